// Pause holds a Pod's network namespace open: the first container of every Pod, which does nothing until it is told to
// end. It is the first process of no shared process namespace here, so it has no children to reap.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
