// Package backup writes backups of a data folder to a folder or to a store that speaks S3. It
// encrypts backups, verifies each one by reading it back, makes them on a schedule, and deletes old
// ones.
//
// It may import store, store/sqlite, store/objects and store/cron. The store writes a backup's content and decides
// whether it is complete; in this package a backup is only a named stream of bytes.
package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"journeyman/store"
	"journeyman/store/objects"
)

// Storage holds the flags for the location and the encryption of backups.
type Storage struct {
	To        string   `help:"Where backups go: a folder, or s3://BUCKET/PREFIX. Use one folder or prefix for each server." placeholder:"PLACE"`
	Recipient []string `help:"Public key (age1...) that backups are encrypted for; may be repeated." placeholder:"KEY"`

	objects.Access `embed:"" prefix:"s3-"`
}

// A Target is a destination of backups, with the recipients that can decrypt them.
type Target struct {
	destination destination
	seal        sealer
}

// A destination keeps backups by name.
type destination interface {
	// room returns an error if the destination has less than atMost bytes free.
	room(atMost int64) error

	// put writes a backup under a name that is not listed yet. After an error, the destination holds no
	// file that could be taken for a complete backup.
	put(ctx context.Context, name string, size int64, write func(w io.Writer) error) error

	// open opens a backup, whether it is listed or not.
	open(ctx context.Context, name string) (io.ReadCloser, error)

	// finish adds a written backup to the list. It stores damaged permanently with it: see entry.
	finish(ctx context.Context, name string, damaged bool) error

	// list returns the listed backups in any order.
	list(ctx context.Context) ([]entry, error)

	// remove deletes a backup, listed or not.
	remove(ctx context.Context, name string) error

	// clean deletes leftover files of interrupted backups that are older than before.
	clean(ctx context.Context, before time.Time) error

	// path returns the full path or URL of a name, for messages.
	path(name string) string
}

// An entry is a listed backup.
type entry struct {
	name    string
	damaged bool // stored files were damaged or missing when it was made; the rest is complete
}

// NewTarget returns the target for an address: s3://BUCKET/PREFIX, an existing folder, a folder
// whose name ends with a slash, or a file. If the address comes from s.To, it is always a folder.
// getenv reads the environment variables of the AWS tools.
func NewTarget(s Storage, to string, getenv func(string) string) (*Target, error) {
	seal, err := newSealer(s.Recipient)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(to)
	switch {
	case to == "":
		return nil, errors.New("name a file, a folder or s3://BUCKET/PREFIX, here or by --backup-to")
	case !strings.HasPrefix(to, objects.Scheme) && to != s.To && !strings.HasSuffix(to, "/") && (err != nil || !info.IsDir()):
		return &Target{&file{to: to}, seal}, nil
	}
	p, err := newDestination(s, to, getenv)
	if err != nil {
		return nil, err
	}
	return &Target{p, seal}, nil
}

// newDestination returns the folder or bucket for an address.
func newDestination(s Storage, to string, getenv func(string) string) (destination, error) {
	if strings.HasPrefix(to, objects.Scheme) {
		return newBucket(s, to, getenv)
	}
	return newFolder(to)
}

// Outside returns an error if the target is a folder inside the data folder. Otherwise the loss of
// the data folder would destroy its backups, too.
func (t *Target) Outside(data string) error {
	f, ok := t.destination.(*folder)
	if !ok {
		return nil
	}
	data, err := filepath.Abs(data)
	if err != nil {
		return err
	}
	below, err := filepath.Rel(data, f.dir)
	if err == nil && filepath.IsLocal(below) {
		return fmt.Errorf("%s is in the data folder: choose a folder outside, best on another disk", f.dir)
	}
	return nil
}

// Path returns the full path or URL of a backup, for messages.
func (t *Target) Path(name string) string { return t.destination.path(name) }

// namePattern matches the names of backups. This package never deletes a file with another name.
var namePattern = regexp.MustCompile(`^journeyman-([0-9]{8}T[0-9]{6}Z)-[0-9a-f]{8}\.tgz(\.age)?$`)

const nameTime = "20060102T150405Z"

// NewName returns the name of a backup that begins now. The random part keeps two servers that
// share a destination from overwriting each other's backups.
func (t *Target) NewName(now time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	name := "journeyman-" + now.UTC().Format(nameTime) + "-" + hex.EncodeToString(random[:]) + ".tgz"
	if t.seal.enabled() {
		name += ".age"
	}
	return name
}

// madeAt returns the time in a backup's name. ok is false if the name does not match namePattern.
func madeAt(name string) (at time.Time, ok bool) {
	match := namePattern.FindStringSubmatch(name)
	if match == nil {
		return at, false
	}
	at, err := time.Parse(nameTime, match[1])
	return at, err == nil
}

// A Source writes archives and verifies them. A store is one.
type Source interface {
	Archive(ctx context.Context, w io.Writer) (store.BackupReport, error)
	VerifyArchive(ctx context.Context, r io.Reader, report store.BackupReport) error
}

// A Written describes a backup that was written and verified.
type Written struct {
	Name   string
	Size   int64 // in bytes, as it is stored
	Report store.BackupReport
}

const (
	cleanTime = 30 * time.Second // time limit for deleting the files of a failed backup
	stopTime  = 3 * time.Second  // the same after a stop; less than the time limit of a scheduler's stop
)

// cleaning returns the context for deleting the files of a failed backup. When ctx ends because the
// server stops, the new context lasts stopTime longer. A later Prune deletes the remaining files.
func cleaning(ctx context.Context) (context.Context, context.CancelFunc) {
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(stopTime, cancel) })
	return rest, func() { stop(); cancel() }
}

// Write writes a backup and reads it back. It lists the backup only if the bytes are equal. atMost
// is an estimate of its maximum size. After an error, the destination holds no file that looks like a
// backup.
func (t *Target) Write(ctx context.Context, name string, atMost int64, from Source) (w Written, err error) {
	w.Name = name
	written := &digest{Hash: sha256.New()}
	opened, err := t.seal.begin()
	if err != nil {
		return w, err
	}
	if err := t.destination.room(atMost); err != nil {
		return w, fmt.Errorf("back up to %s: %w", t.destination.path(name), err)
	}
	err = t.destination.put(ctx, name, atMost, func(out io.Writer) (err error) {
		sealed, err := opened.writer(io.MultiWriter(out, written))
		if err != nil {
			return err
		}
		if w.Report, err = from.Archive(ctx, sealed); err != nil {
			return err
		}
		return sealed.Close()
	})
	if err == nil {
		err = t.readBack(ctx, name, written, opened, func(r io.Reader) error {
			return from.VerifyArchive(ctx, r, w.Report)
		})
		if err == nil {
			err = t.destination.finish(ctx, name, w.Report.Damaged > 0)
		}
		if err != nil {
			// Delete the files even when the server stops: they would look like a backup.
			rest, cancel := cleaning(ctx)
			defer cancel()
			err = errors.Join(err, t.destination.remove(rest, name))
		}
	}
	w.Size = written.size
	if err != nil {
		return w, fmt.Errorf("back up to %s: %w", t.destination.path(name), err)
	}
	return w, nil
}

// readBack reads a stored backup and compares it with the written bytes.
func (t *Target) readBack(ctx context.Context, name string, written *digest, opened *sealing,
	verify func(io.Reader) error) (err error) {
	stored, err := t.destination.open(ctx, name)
	if err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	defer func() { err = errors.Join(err, stored.Close()) }()
	read := &digest{Hash: sha256.New()}
	plain, err := opened.reader(io.TeeReader(stored, read))
	if err == nil {
		err = verify(plain)
	}
	if err == nil {
		_, err = io.Copy(read, stored) // the bytes that the verification did not read
	}
	switch {
	case err != nil:
		return fmt.Errorf("read it again: %w", err)
	case read.size != written.size || !slices.Equal(read.Sum(nil), written.Sum(nil)):
		return fmt.Errorf("read it again: the %d stored bytes differ from the %d written bytes",
			read.size, written.size)
	}
	return nil
}

// A digest computes the size and the SHA-256 of the bytes that are written to it.
type digest struct {
	hash.Hash
	size int64
}

// Write adds b.
func (d *digest) Write(b []byte) (int, error) {
	d.size += int64(len(b))
	return d.Hash.Write(b)
}

// Forget deletes the files of the interrupted backup with that name.
func (t *Target) Forget(ctx context.Context, name string) error {
	names, err := t.Names(ctx)
	if err != nil || slices.Contains(names, name) {
		return err // it was listed before the interruption
	}
	return t.destination.remove(ctx, name)
}
