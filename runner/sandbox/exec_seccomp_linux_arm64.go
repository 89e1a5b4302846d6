package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0x40000000 // above every number: this architecture has one set of them
)

// deniedHere are the calls to deny that only this architecture has.
var deniedHere []uint32
