"""What happens to the processes of operators: drawn from the seed."""

import functools


def of_a_process(event):
    """The event, with a process that is alive. It cannot happen if there is none."""

    @functools.wraps(event)
    def drawn(events):
        alive = [process for process in events.world.processes if process.alive]
        return event(events, events.draw.choice(alive)) if alive else None

    return drawn


class ProcessEvents:
    """Each event returns what happened, or None if it could not happen."""

    def __init__(self, world):
        self.world, self.draw = world, world.random

    def _with_standby(self):
        """Often start another operator that can take over."""
        if self.draw.random() < 0.6 and sum(process.alive for process in self.world.processes) < 2:
            self.world.start()

    @of_a_process
    def kill_at_request(self, process):
        process.kill_after = process.requests + self.draw.randint(1, 120)
        return f"{process} will be killed at request {process.kill_after}"

    @of_a_process
    def kill_now(self, process):
        process.kill()
        return f"{process} is killed"

    @of_a_process
    def pause(self, process):
        self._with_standby()
        process.pause()
        seconds = self.draw.choice((2, 10, 25, 45))
        self.world.loop.call_later(seconds, process.resume)
        return f"{process} is paused for {seconds} s"

    @of_a_process
    def cut_off(self, process):
        self._with_standby()
        server = self.draw.choice(("kafka", "kube", "kube"))
        process.cut_off.add(server)
        seconds = self.draw.choice((5, 15, 40))
        self.world.loop.call_later(seconds, process.cut_off.discard, server)
        return f"{process} cannot reach {server} for {seconds} s"

    @of_a_process
    def pause_after_record(self, process):
        """Between a record and the order that follows it, for so long that another operator becomes the leader."""
        if sum(process.alive for process in self.world.processes) < 2:
            self.world.start()
        process.pause_after_record = True
        return f"{process} will be paused after its next record"
