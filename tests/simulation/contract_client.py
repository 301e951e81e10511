"""The port of the operator to simulated brokers that always answer."""

import asyncio

_SECONDS = 0.05


class SimulatedClient:
    """As `process.KafkaOf`, without a process."""

    def __init__(self, kafka):
        self._kafka = kafka

    async def close(self):
        pass

    async def describe_partitions(self, topics=None, listed=None):
        """Two sources, no snapshot."""
        listed = await self.list_reassignments() if listed is None else listed
        await asyncio.sleep(_SECONDS)
        states = await self._kafka.metadata(topics)
        for tp in listed.keys() & states.keys():
            states[tp] = self._kafka.merged(states[tp], listed[tp])
        return states

    async def alter(self, orders):
        """Without the rule of our adapter, as `kafka.reassignment.ReassignmentClient.alter`."""
        await asyncio.sleep(_SECONDS)
        return {tp: self._kafka._alter(tp, to, redirect=True) for tp, to in orders.items()}

    def __getattr__(self, name):
        act = getattr(self._kafka, name)

        async def call(*arguments):
            await asyncio.sleep(_SECONDS)
            return await act(*arguments)

        return call
