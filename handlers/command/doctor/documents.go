package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"journeyman/handlers/command"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
)

// ownerOf returns the user id of the owner of a file. ok is false if it is unknown.
func ownerOf(path string) (user int, ok bool) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return int(st.Uid), err == nil
}

// checkDocuments reports whether this machine can compile the reader of PDF documents, and keep the result.
func (x *examination) checkDocuments(ctx context.Context) []check {
	const name = "PDF reader"
	unused, err := store.Unused(ctx, x.Data)
	if err != nil || unused && x.Database == "" {
		return []check{{name, statusSkipped, "a server compiles it when it reads the first PDF document", ""}}
	}
	// What another user compiles in the folder would keep its owner's server from using the folder.
	if owner, ok := ownerOf(x.Data); ok && owner != os.Geteuid() {
		return []check{{name, statusSkipped, "another user owns the data folder: a server of that user compiles it", ""}}
	}
	begun := time.Now()
	err = x.NewFilterPool().Prepare(ctx, tool.PDFPreparation())
	_, small := errors.AsType[*sandbox.FilterError](err)
	switch {
	case err == nil:
		return []check{{name, statusOK, fmt.Sprintf("compiled in %s, after %s", filepath.Join(x.Data, command.CacheFolder),
			time.Since(begun).Round(time.Millisecond)), ""}}
	case small:
		return []check{{name, statusWarning, reason(err),
			"give this machine or its container more memory: PDF documents cannot be read"}}
	case errors.Is(err, sandbox.ErrUnprepared):
		return []check{{name, statusWarning, reason(err),
			"correct the owner of the folder, or make room on the disk: until then each PDF document takes seconds longer"}}
	}
	return []check{{name, statusFailed, reason(err), "PDF documents cannot be read on this machine"}}
}
