package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0x40000000 // higher than every number: this architecture has no second set of calls
)

// allowedHere are permitted calls that only this architecture has.
var allowedHere []uint32
