package bench

import "syscall"

// ownChild makes the kernel kill the child when this process dies: nobody else would stop it.
func ownChild() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
