package store

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"journeyman/store/db"
)

// A BackupReport lists the files that a backup left out because it could not read them, and the
// kept files that are damaged or missing.
type BackupReport struct {
	Unread int      `json:"unread"` // files and folders
	Names  []string `json:"names"`  // of the first of them, quoted, each with the reason

	Damaged      int      `json:"damaged,omitempty"`      // kept files with another content, or missing
	DamagedNames []string `json:"damagedNames,omitempty"` // of the first of them, likewise

	Database string `json:"database,omitempty"` // SHA-256 of the database in the archive
}

// Limits of a BackupReport. Workers choose names of any length, and the whole report is the trailer of an
// answer, for which Go's HTTP client has 4 KiB. JSON doubles the backslashes of a name.
const (
	maxNamed  = 5   // names of each kind
	maxQuoted = 100 // bytes of a quoted name
	maxReason = 60  // bytes of a reason
)

// String returns a sentence about the files that are missing and one about those that are damaged,
// or "" if there are none.
func (r BackupReport) String() string {
	text := listed(r.Unread, r.Names, "%d files or folders could not be read and are not in the backup: %s")
	damaged := listed(r.Damaged, r.DamagedNames, "%d kept files are damaged in the data folder: %s")
	if text != "" && damaged != "" {
		text += "\n"
	}
	return text + damaged
}

// listed returns a sentence with a number and the first names, or "" for none.
func listed(n int, names []string, format string) string {
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf(format, n, strings.Join(names, ", "))
	if more := n - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (r *BackupReport) add(name string, err error) {
	r.Unread++
	r.Names = named(r.Names, name, err)
}

func (r *BackupReport) addDamaged(name string, err error) {
	r.Damaged++
	r.DamagedNames = named(r.DamagedNames, name, err)
}

// named appends a name with its reason, unless the list is full.
func named(list []string, name string, err error) []string {
	if len(list) == maxNamed {
		return list
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err // without the path
	}
	quoted, reason := strconv.QuoteToASCII(name), strings.Trim(strconv.QuoteToASCII(err.Error()), `"`)
	if len(quoted) > maxQuoted {
		quoted = quoted[:maxQuoted-4] + `..."`
	}
	if len(reason) > maxReason {
		reason = reason[:maxReason-3] + "..."
	}
	return append(list, quoted+" ("+reason+")")
}

// Backup does what Archive does, and stores the present as the time of the last backup.
func (s *Store) Backup(ctx context.Context, w io.Writer) (BackupReport, error) {
	report, err := s.Archive(ctx, w)
	if err == nil && report.Damaged == 0 {
		_ = s.NoteBackup() // the backup is complete even if this fails
	}
	return report, err
}

// Archive writes the data folder as it is now to w, as a compressed tar: the database, the kept
// files and the workspaces. Writes go on meanwhile, and Archive pauses often while requests use
// the database.
//
// The database is copied first. Kept files are neither changed nor removed before the end, so
// every file that the copy names is in the backup. A workspace file that changes meanwhile may
// be a mix of two versions. Workspace files that cannot be read are left out and reported. The
// copy of the database is verified before the first byte is written, and each kept file while
// it is written: see BackupReport. Archive refuses a damaged database, and one on a server.
func (s *Store) Archive(ctx context.Context, w io.Writer) (report BackupReport, err error) {
	if err := s.needsFile("a backup", BackupInstead); err != nil {
		return report, err
	}
	s.backups.Lock()
	defer s.backups.Unlock()
	snapshot := filepath.Join(s.dir, tempPrefix+"backup"+tempSuffix)
	if err := os.RemoveAll(snapshot); err != nil { // left by a backup that was interrupted
		return report, fmt.Errorf("back up: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(snapshot)) }()
	pace := s.pace(ctx)
	if err := s.copyVerified(ctx, snapshot, pace); err != nil {
		return report, fmt.Errorf("back up database: %w", db.Unavailable(err))
	}
	// From here on the copy decides which kept files the backup must contain.
	z := gzip.NewWriter(w)
	a := archiver{ctx: ctx, tar: tar.NewWriter(pace.Writer(z))}
	if err := missingBlobs(ctx, snapshot, s.blobExists, func(name string) {
		a.report.addDamaged(name, errors.New("it is missing"))
	}); err != nil {
		return report, fmt.Errorf("back up: %w", err)
	}
	if err := a.database(snapshot); err != nil {
		return report, fmt.Errorf("back up database: %w", err)
	}
	if err := a.folders(s.dir); err != nil {
		return report, fmt.Errorf("back up: %w", err)
	}
	if err := errors.Join(a.tar.Close(), z.Close()); err != nil {
		return report, err
	}
	return a.report, nil
}

func (s *Store) blobExists(sum string) (bool, error) { return s.hasBlob(sum), nil }

// LastBackup returns the time when the last backup ended, or the zero time if there was
// none.
func (s *Store) LastBackup() (time.Time, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, lastBackupName))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // a crash has truncated the file, so there is no known backup
	}
	return t, nil
}

// NoteBackup stores the present as the time of the last backup.
func (s *Store) NoteBackup() error {
	return os.WriteFile(filepath.Join(s.dir, lastBackupName), []byte(s.now().UTC().Format(time.RFC3339)), 0o600)
}

// An archiver writes files to a tar.
//
// Workers change their folders meanwhile, and a worker may be hostile. So the archiver
// opens every name in its open folder, never looks a path up twice, and follows no link.
// An os.Root does not suffice: it follows links that stay below it, and waits on a pipe
// that stands in the place of a folder.
type archiver struct {
	ctx    context.Context
	tar    *tar.Writer
	report BackupReport
}

// database adds the copy of the database.
func (a *archiver) database(snapshot string) error {
	f, err := os.Open(snapshot)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.add(f, info, databaseName)
}

// folders adds the archived folders of the data folder dir.
func (a *archiver) folders(dir string) error {
	top, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer top.Close()
	for _, name := range archived {
		if err := a.entry(top, name, name, maxArchivedDepth); err != nil {
			return err
		}
	}
	return nil
}

// skip reports a name that cannot be read. A worker may make its own files unreadable. For
// a kept file skip returns an error, because the database names it.
func (a *archiver) skip(name string, why error) error {
	if name == databaseName || name == archived[0] || strings.HasPrefix(name, archived[0]+"/") {
		return fmt.Errorf("read %s: %w", name, why)
	}
	a.report.add(name, why)
	return nil
}

// entry adds the entry base of the open folder dir: a file, or a folder with its entries.
// Links, pipes and sockets are left out: the service itself creates none.
func (a *archiver) entry(dir *os.File, base, name string, depth int) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if len(name) > maxArchivedName || depth < 0 {
		return a.skip(name, errors.New("its path is too long"))
	}
	f, err := openIn(dir, base)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return nil // in this order: removed since it was listed, a link, a socket
	case err != nil:
		return a.skip(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return a.skip(name, reason(err))
	case info.IsDir():
		return a.folder(f, info, name, depth)
	case info.Mode().IsRegular():
		return a.add(f, info, name)
	}
	return nil
}

// folder adds the entries of an open folder.
func (a *archiver) folder(f *os.File, info os.FileInfo, name string, depth int) error {
	if info.Mode().Perm()&0o500 != 0o500 {
		_ = f.Chmod(info.Mode().Perm() | 0o700) // if this fails, each entry is reported
	}
	for {
		names, err := f.Readdirnames(1000) // not all at once: a worker may have created millions
		slices.Sort(names)
		for _, base := range names {
			if name == archived[0] && isTemp(base) {
				continue // an upload that is not complete
			}
			if err := a.entry(f, base, path.Join(name, base), depth-1); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return a.skip(name, reason(err))
		}
	}
}

// add adds the present content of an open file. The tar header already contains the size, so a file
// that shrinks, or cannot be read to its end, is filled up with zeros.
func (a *archiver) add(f *os.File, info os.FileInfo, name string) error {
	h := &tar.Header{Name: name, Size: info.Size(), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(),
		Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(h); err != nil {
		return err
	}
	content, check := &fullReader{ctx: a.ctx, file: f}, newContentCheck(name)
	if _, err := io.CopyN(io.MultiWriter(a.tar, check), content, info.Size()); err != nil {
		return err
	}
	if check.damaged() {
		a.report.addDamaged(name, errWrongContent)
	}
	if name == databaseName {
		a.report.Database = check.sum()
	}
	if content.failed != nil {
		return a.skip(name, fmt.Errorf("only in part: %w", reason(content.failed)))
	}
	return nil
}

// A fullReader reads a file, and zeros without end after the file ends or fails.
type fullReader struct {
	ctx    context.Context
	file   *os.File
	ended  bool
	failed error // the error of reading the file
}

// Read fails only when the context has ended.
func (r *fullReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if !r.ended {
		n, err := r.file.Read(b)
		if r.ended = err != nil; r.ended && err != io.EOF {
			r.failed = err
		}
		if n > 0 {
			return n, nil
		}
	}
	clear(b)
	return len(b), nil
}

// openIn opens the file or folder base of the open folder dir. It never follows a link and
// never waits. It makes a file readable first if the owner may not read it.
func openIn(dir *os.File, base string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	open := func() (fd int, err error) {
		for {
			if fd, err = unix.Openat(int(dir.Fd()), base, flags, 0); err != unix.EINTR {
				return fd, err
			}
		}
	}
	fd, err := open()
	if errors.Is(err, unix.EACCES) && makeReadable(dir, base) {
		fd, err = open()
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir.Name(), base)), nil
}

// makeReadable lets the owner read the file or folder base of dir, and reports whether it
// could.
func makeReadable(dir *os.File, base string) bool {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false
	}
	mode := uint32(st.Mode)&0o777 | 0o400 //nolint:unconvert // types differ between systems
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		mode |= 0o700
	}
	return chmodIn(dir, base, mode) == nil
}

// reason returns an error without the path in it, because the report has the path.
func reason(err error) error {
	if p := (*os.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}
