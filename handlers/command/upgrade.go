package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"journeyman/store"
)

// An Upgrade replaces this binary with a newer one. A kill at any moment
// leaves a binary that runs and a database that it can read.
type Upgrade struct {
	From      string        `help:"The new binary: a file or an https:// address, also of a release's .tar.gz archive." placeholder:"FILE"`
	Checksums string        `help:"File or https:// address with SHA-256 sums; checksums.txt beside the new binary by default." placeholder:"FILE"`
	Check     bool          `help:"Only verify the new binary; change nothing."`
	RollBack  bool          `help:"Go back to the binary, and if needed to the database, from before the last upgrade."`
	Service   string        `help:"Unit of systemd to restart; by default that of the running server." placeholder:"UNIT"`
	Backup    string        `name:"backup-file" help:"Path of the backup; DATA.before-upgrade.tgz beside the data folder by default." placeholder:"FILE"`
	Wait      time.Duration `name:"ready-within" default:"2m" min:"0" help:"Time for the new server to become ready before the command rolls back."`
	Try       bool          `hidden:"" help:"Open the data folder as a start does, and exit. The old binary runs the new one with this flag."`
}

// The suffixes of the files beside the binary.
const (
	newSuffix = ".new" // the new binary, until it is verified
	oldSuffix = ".old" // the binary from before the last upgrade
)

// Run upgrades, or does the part that a flag names.
func (c *Upgrade) Run(p *Program) error {
	if c.Try {
		return p.tryFolder()
	}
	if err := p.needsFile("upgrade"); err != nil {
		return err
	}
	u, err := c.begin(p)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(u.path + newSuffix) }() // it is renamed, or of no use
	if c.RollBack {
		return u.rollBack(u.service(p.Context), errors.New("as requested"))
	}
	if c.From == "" {
		return errors.New("--from: name the new binary, a file or an https:// address")
	}
	next, err := u.prepare(p.Context)
	if err != nil || c.Check {
		return err
	}
	return u.replace(next)
}

// tryFolder opens the data folder, which upgrades its database, and closes it.
func (p *Program) tryFolder() error {
	st, err := p.OpenStore()
	if err != nil {
		return err
	}
	return errors.Join(st.Ping(p.Context), st.Close())
}

// An upgrade is one run of the command Upgrade.
type upgrade struct {
	*Upgrade
	*Program
	path string // of the binary
}

// begin finds the binary. It refuses one that somebody else manages.
func (c *Upgrade) begin(p *Program) (*upgrade, error) {
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	path = strings.TrimSuffix(path, oldSuffix) // of an old binary that rolls back
	if err := refuseManaged(p.Context, path); err != nil {
		return nil, err
	}
	return &upgrade{c, p, path}, nil
}

// prepare fetches and verifies the new binary.
func (u *upgrade) prepare(ctx context.Context) (next Build, err error) {
	if err := fetchBinary(ctx, u.From, u.Checksums, u.path+newSuffix, u.Stdout); err != nil {
		return next, err
	}
	if next, err = readBinary(ctx, u.path+newSuffix); err != nil {
		return next, err
	}
	database, err := store.FolderVersion(ctx, u.Data)
	if err != nil {
		return next, err
	}
	if database > next.Database {
		return next, fmt.Errorf("%s is too old: the database has version %d, and it opens versions up to %d",
			u.From, database, next.Database)
	}
	now := ReadBuild(u.Version)
	fmt.Fprintf(u.Stdout, "upgrade of %s\n  from  %s\n  to    %s\n", u.path, now.line(), next.line())
	if database > 0 && database < next.Database {
		fmt.Fprintf(u.Stdout, "  the database goes from version %d to %d\n", database, next.Database)
	}
	return next, nil
}

// replace makes a backup, replaces the binary, and checks that the new one works. Otherwise it
// rolls back.
func (u *upgrade) replace(next Build) error {
	before, err := u.controlClient().Ready(u.Context)
	running := before.Process > 0 // ready or not
	if !running && store.InUse(u.Data) {
		return fmt.Errorf("a server has the data folder open, and does not report its state: %w", err)
	}
	if err := u.backUp(); err != nil {
		return fmt.Errorf("nothing was changed: back up: %w", err)
	}
	unit := u.service(u.Context)
	if err := replaceBinary(u.path); err != nil {
		return fmt.Errorf("replace %s: %w", u.path, err)
	}
	switch {
	case unit != nil && running:
		err = errors.Join(unit.do(u.Context, "restart"), u.awaitReplacement(before.Process))
	case running:
		fmt.Fprintf(u.Stdout, "replaced. Restart the server now, then ask \"journeyman health\".\n"+
			"\"journeyman upgrade --roll-back\" goes back, on a stopped server.\n")
		return nil
	default:
		err = u.tryNew()
	}
	if err != nil {
		// Also after an interrupt, so that no upgrade stays half done.
		return u.rollBack(unit, err)
	}
	fmt.Fprintf(u.Stdout, "upgraded to %s; the old binary is %s\n", next.Version, u.path+oldSuffix)
	return nil
}

// backUp writes the backup of the data folder, if there is a database.
func (u *upgrade) backUp() error {
	if version, err := store.FolderVersion(u.Context, u.Data); err != nil || version == 0 {
		return err
	}
	data, err := filepath.Abs(u.Data)
	if err != nil {
		return err
	}
	if err := u.checkOwner(data); err != nil {
		return err
	}
	file := u.Backup
	if file == "" {
		file = data + ".before-upgrade.tgz"
	}
	return (&Backup{File: file}).Run(u.Program)
}

// checkOwner refuses to open the stopped folder of another user: the server could not read the
// files that this process would create there.
func (u *upgrade) checkOwner(data string) error {
	info, err := os.Stat(data)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() {
		return nil
	}
	if state, _ := u.controlClient().Ready(u.Context); state.Process > 0 {
		return nil // the server writes the files
	}
	return fmt.Errorf("%s belongs to user %d: start the server first, or run this command as that user",
		data, owner.Uid)
}

// replaceBinary replaces the old binary, which stays beside the new one. path always holds a complete
// binary.
func replaceBinary(path string) error {
	old, next := path+oldSuffix, path+newSuffix
	// A link first, because a rename alone would leave nothing at path for a moment.
	if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(path, old); err != nil {
		return err
	}
	if err := store.SyncFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return store.SyncFolder(filepath.Dir(path))
}

// awaitReplacement waits until another process than the given one serves and is ready.
func (u *upgrade) awaitReplacement(process int) error {
	ctx, cancel := context.WithTimeout(u.Context, u.Wait)
	defer cancel()
	for {
		state, err := u.controlClient().Ready(ctx)
		switch {
		case state.Process != process && state.usable():
			return nil
		case err == nil:
			err = errors.New("the old process still serves")
		}
		_ = store.Pause(ctx, healthEvery)
		if ctx.Err() != nil {
			return fmt.Errorf("after %s: %w", u.Wait, err)
		}
	}
}

// rollBack restores the old binary, and the database from before the upgrade if the new program has
// upgraded it. unit is nil if there is no service to stop and start.
func (u *upgrade) rollBack(unit *service, why error) error {
	ctx := context.WithoutCancel(u.Context)
	fmt.Fprintf(u.Stdout, "rolling back: %v\n", why)
	if _, err := os.Stat(u.path + oldSuffix); err != nil {
		return fmt.Errorf("there is no binary from before an upgrade: %w", err)
	}
	old, err := readBinary(ctx, u.path+oldSuffix)
	if err != nil {
		return err
	}
	if unit != nil {
		if err := unit.do(ctx, "stop"); err != nil {
			return errors.Join(why, err)
		}
	}
	// The database first: a kill between the two leaves the new binary with an old database,
	// which it upgrades. The old binary could not read a new one.
	kept, err := store.RollBack(ctx, u.Data, old.Database)
	if err != nil {
		return errors.Join(why, fmt.Errorf("roll back the database: %w", err), unit.startAgain(ctx))
	}
	if kept != "" {
		fmt.Fprintf(u.Stdout, "the database from before the upgrade is back; the newer one is %s\n", kept)
	}
	if err := os.Rename(u.path+oldSuffix, u.path); err != nil {
		return errors.Join(why, err, unit.startAgain(ctx))
	}
	err = errors.Join(store.SyncFolder(filepath.Dir(u.path)), unit.startAgain(ctx))
	fmt.Fprintf(u.Stdout, "rolled back to %s\n", old.Version)
	if u.RollBack {
		return err
	}
	return errors.Join(fmt.Errorf("the new version does not work here, and was rolled back: %w", why), err)
}
