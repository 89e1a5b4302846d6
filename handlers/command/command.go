// Package command implements the commands with which an operator works on a data folder: run a
// task, manage keys and users, back up and restore. Commands that change a
// folder work through the socket of the server that has the folder open. If no server runs, they
// work on the folder itself.
//
// Flags and help texts are in the tags that main's parser reads. This package reads no
// configuration of its own.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"journeyman/handlers"
	"journeyman/runner"
	"journeyman/store"
)

// A Program holds what main passes to every command.
type Program struct {
	Settings
	Context context.Context    // ends when the operator interrupts the command
	Stop    context.CancelFunc // afterwards a second interrupt kills the process
	Version string
	Schema  string // of the database
	Env     *Environment
	Stdout  io.Writer
	Stderr  io.Writer
	Log     *slog.Logger

	FileSize int64 // bytes of the largest file that this server takes; 0 for the default

	SetLevel func() (slog.Level, error) // reads the level of Log again
}

// UserAgent returns the name of this program in HTTP requests.
func (p *Program) UserAgent() string { return "Journeyman/" + p.Version }

// needsFile returns an error if the database is not a file in the data folder.
func (p *Program) needsFile(command string) error {
	if p.Database == "" {
		return nil
	}
	return fmt.Errorf("%s works on a database in the data folder, and --database names one on a PostgreSQL server: %s",
		command, store.BackupInstead)
}

// needsData returns an error if no server has ever started on the data folder. A command that only
// reads must not create the folder: a mistyped --data would look like a server without any data.
func (p *Program) needsData() error {
	if p.Database != "" {
		return nil
	}
	unused, err := store.Unused(p.Context, p.Data)
	if err == nil && unused {
		err = fmt.Errorf("there is no data in %s: name the folder of your server with --data", p.Data)
	}
	return err
}

// administer calls do for the data folder: through the running server or, if no server runs, on the
// folder itself. In the second case links begin with baseURL; a running server uses its own base
// URL. It never upgrades a database: only the start of a server does.
func (p *Program) administer(baseURL string, do func(Admin) error) (err error) {
	st, err := p.openStore(true) // people run such a command to look at the folder, or to copy it before an upgrade
	if errors.Is(err, store.ErrLocked) {
		return do(p.ControlClient())
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return do(DataFolder{Store: st, BaseURL: baseURL,
		Runner: func() (*runner.Runner, error) { return p.idleRunner(st) }})
}

// call performs one operation, and shows its reply. It shows the reply before the folder is closed:
// an error of closing must not hide a secret that only the reply has.
func (p *Program) call(baseURL string, c Call, show func(Reply)) error {
	if !c.prepares() {
		if err := p.needsData(); err != nil {
			return err
		}
	}
	return p.administer(baseURL, func(admin Admin) error {
		reply, err := admin.Do(p.Context, c)
		if err == nil {
			show(reply)
		}
		return err
	})
}

// OpenAPI prints the description of the API.
type OpenAPI struct{}

// Run prints the document as JSON.
func (OpenAPI) Run(p *Program) error {
	doc, err := handlers.OpenAPI(p.Version, "")
	if err == nil {
		fmt.Fprintln(p.Stdout, string(doc))
	}
	return err
}
