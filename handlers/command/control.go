package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"journeyman/handlers"
	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// Admin performs the operations of the command line. A DataFolder performs them on the
// folder itself, a ControlClient through the server that has the folder open.
type Admin interface {
	Do(ctx context.Context, c Call) (Reply, error)
	Backup(ctx context.Context, w io.Writer) (store.BackupReport, error)
}

// A Call asks for one operation. Exactly one field of it is set.
type Call struct {
	Create *people.NewKey `json:"create,omitempty"`
	List   *string        `json:"list,omitempty"`   // name of the organization; "" for all of them
	Revoke *string        `json:"revoke,omitempty"` // the key, its id or its prefix
	Roll   *string        `json:"roll,omitempty"`   // the key, its id or its prefix
	Users  bool           `json:"users,omitempty"`
	Reset  *string        `json:"reset,omitempty"` // email address of the user

	Provider *ProviderCall `json:"provider,omitempty"`
	Vacuum   bool          `json:"vacuum,omitempty"` // return free pages of the database, for some seconds

	Maintenance *MaintenanceCall `json:"maintenance,omitempty"`
}

// prepares reports whether the call makes sense before the first start of a server: it creates
// something that the server then has.
func (c Call) prepares() bool {
	return c.Create != nil || c.Provider != nil && (c.Provider.Add != nil || c.Provider.Default != nil)
}

// A Reply is the result of a Call.
type Reply struct {
	Secret string        `json:"secret,omitempty"` // of the created key
	Keys   []people.Key  `json:"keys,omitempty"`   // all that were listed, or the changed one
	Users  []people.User `json:"users,omitempty"`
	Link   string        `json:"link,omitempty"` // works once, for the user to choose a password
	Error  string        `json:"error,omitempty"`

	Providers []workers.Provider `json:"providers,omitempty"` // without keys
	Vacuum    *Vacuumed          `json:"vacuum,omitempty"`

	Result  string `json:"result,omitempty"`  // a line for people
	Running int64  `json:"running,omitempty"` // turns, in maintenance
}

// A DataFolder is the Admin of a store that this process has open.
type DataFolder struct {
	Store   *store.Store
	BaseURL string // the base of the links in replies

	// Runner returns the runner that connects and tests providers of models.
	Runner func() (*runner.Runner, error)

	Service *Service // the server; nil if none runs
}

// Backup writes the folder to w. If it fails or finds damage, it raises an alert for the
// organizations: perhaps nobody reads the output of a regular backup command.
func (d DataFolder) Backup(ctx context.Context, w io.Writer) (store.BackupReport, error) {
	report, err := d.Store.Backup(ctx, w)
	if err != nil || report.Damaged > 0 {
		err = errors.Join(err, d.Store.Effects.AlertBackup(context.WithoutCancel(ctx)))
	}
	return report, err
}

// Do performs an operation as the operator, who has all rights, also in maintenance.
func (d DataFolder) Do(ctx context.Context, c Call) (r Reply, err error) {
	operator := people.Operator()
	ctx = gate.DuringMaintenance(ctx)
	switch {
	case c.Create != nil:
		_, r.Secret, err = d.Store.People.CreateKey(ctx, operator, *c.Create)
	case c.List != nil:
		r.Keys, err = d.Store.People.Keys(ctx, *c.List)
	case c.Revoke != nil:
		r.Keys = make([]people.Key, 1)
		r.Keys[0], err = d.Store.People.RevokeKey(ctx, operator, *c.Revoke)
	case c.Roll != nil:
		r.Keys = make([]people.Key, 1)
		r.Keys[0], r.Secret, err = d.Store.People.RollKey(ctx, operator, *c.Roll)
	case c.Users:
		r.Users, err = d.Store.People.Users(ctx)
	case c.Reset != nil:
		var token string
		if _, token, err = d.Store.People.CreatePasswordLink(ctx, operator, people.LinkReset, *c.Reset); err == nil {
			r.Link = handlers.LinkAddress(d.BaseURL, people.LinkReset, token)
		}
	case c.Provider != nil:
		r.Providers, err = d.doProvider(ctx, *c.Provider)
	case c.Vacuum:
		r.Vacuum, err = d.vacuum(ctx)
	case c.Maintenance != nil && d.Service != nil:
		r.Result, r.Running, err = d.Service.maintain(ctx, *c.Maintenance)
	default: // the command line of a newer version
		err = db.Errorf(db.Invalid, "the running server does not support this command")
	}
	return r, err
}

const (
	maxCall      = 1 << 20 // bytes of a Call
	backupPath   = "/backup"
	backupReport = "Backup-Report" // the trailer that holds a store.BackupReport in JSON
	backupError  = "Backup-Error"  // the trailer with the reason why the archive is not complete
	maxWhy       = 300             // characters of the reason: Go's HTTP client has 4 KiB for all trailers
)

// Control returns the handler for the data folder's socket. Only the owner of the
// data folder can open the socket, so the handler asks for no key.
func Control(admin Admin, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == backupPath {
			serveBackup(w, r, admin, log)
			return
		}
		var call Call
		var reply Reply
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCall)).Decode(&call)
		if err == nil {
			reply, err = admin.Do(r.Context(), call)
		}
		if err != nil {
			reply.Error = err.Error()
		}
		// Errors are part of the reply: the status is 200 for every call that arrives.
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply) // strings and times always marshal; a client that is gone needs no error
	})
}

// serveBackup sends the archive and, in a trailer, the report of missing files. A backup that fails
// before its first byte is answered with status 500 and the reason. A backup that fails later has
// the reason in a trailer.
func serveBackup(w http.ResponseWriter, r *http.Request, admin Admin, log *slog.Logger) {
	// Trailers, because missing files and failures are known only when the archive is written.
	w.Header().Set("Trailer", backupReport+", "+backupError)
	body := &sideWriter{Writer: w}
	report, err := admin.Backup(r.Context(), body)
	if err != nil {
		log.Error("a backup failed", "err", err, "sent", body.sent)
		refuseBackup(w, body.sent > 0, err)
		return
	}
	if report.Unread+report.Damaged > 0 {
		log.Warn("a backup lacks files, or has damaged ones", "unread", report.Unread, "damaged", report.Damaged,
			"report", report.String())
	}
	var trailer strings.Builder
	e := json.NewEncoder(&trailer)
	e.SetEscapeHTML(false) // an escaped "<" is six times as long
	if err := e.Encode(report); err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set(backupReport, strings.TrimSpace(trailer.String()))
}

// refuseBackup sends the reason why a backup failed. If the archive has begun, the status is
// sent already.
func refuseBackup(w http.ResponseWriter, begun bool, err error) {
	if begun {
		why := strconv.QuoteToASCII(db.FirstRunes(err.Error(), maxWhy)) // one line, whatever the error says
		w.Header().Set(backupError, why)
		return
	}
	w.Header().Del("Trailer")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_ = json.NewEncoder(w).Encode(Reply{Error: err.Error()}) // a client that is gone needs no error
}

// A sideWriter counts the bytes that it has written, and stores the error of its writer: io.Copy does
// not show which side failed.
type sideWriter struct {
	io.Writer
	sent   int64
	failed error
}

// Write writes b.
func (w *sideWriter) Write(b []byte) (n int, err error) {
	n, err = w.Writer.Write(b)
	w.sent, w.failed = w.sent+int64(n), err
	return n, err
}

// ListenControl opens the socket for commands at a path in a data folder that this process has
// open. Only the owner of the folder can connect to the socket.
func ListenControl(path string) (net.Listener, error) {
	// This process holds the lock of the folder, so an existing socket belongs to a
	// process that has died.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	short, done, err := shortPath(path)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	defer done()
	ln, err := net.Listen("unix", short)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // short is invalid by then; the next start removes the socket
	return ln, os.Chmod(path, 0o600)
}

// socketPath returns the path of the socket where a running server takes commands. node is its name
// among the servers that share the data folder, or "".
func socketPath(data, node string) string {
	if node == "" {
		return filepath.Join(data, "control.sock")
	}
	return filepath.Join(data, "control-"+node+".sock")
}

// maxSocketPath bounds the path in a unix socket address, in bytes.
const maxSocketPath = 100

// shortPath returns a path to the same file that fits into a socket address. It is
// valid until the caller calls done.
func shortPath(path string) (short string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	// The kernel resolves this path through the open folder, whatever its own length.
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

// A ControlClient is the Admin of a folder that a running server has open.
type ControlClient struct{ client *http.Client }

// NewControlClient returns a client of the server that listens on a socket.
func NewControlClient(path string) *ControlClient {
	// The host in URLs is ignored: every request goes to the socket.
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		short, done, err := shortPath(path)
		if err != nil {
			return nil, err
		}
		defer done()
		return (&net.Dialer{}).DialContext(ctx, "unix", short)
	}
	return &ControlClient{&http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Answers reports whether a server answers on the socket. A connection alone proves nothing: a
// process that a dead server has forked may still hold its socket, and accepts no connection.
func (c *ControlClient) Answers(ctx context.Context) bool {
	defer c.client.CloseIdleConnections()
	resp, err := c.send(ctx, http.MethodPost, "/", []byte(`{}`))
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // its content does not matter
	return true
}

// send sends a request to the server. The caller closes the body of the response.
func (c *ControlClient) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the server of the data folder ended, or closed the connection, " +
			"before it answered: its log may say why")
	}
	if err != nil {
		return nil, fmt.Errorf("the data folder is in use, and its server cannot be reached: %w", err)
	}
	return resp, nil
}

// Do sends a call and returns the server's reply, or the error in it.
func (c *ControlClient) Do(ctx context.Context, call Call) (reply Reply, err error) {
	body, err := json.Marshal(call)
	if err != nil {
		return reply, err
	}
	patience := 30 * time.Second
	if call.Provider != nil {
		patience = 3 * time.Minute // a test waits for a model
	}
	if call.Maintenance != nil {
		patience += call.Maintenance.Wait
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	resp, err := c.send(ctx, http.MethodPost, "/", body)
	if err != nil {
		return reply, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return reply, fmt.Errorf("read the server's answer: %w", err)
	}
	if reply.Error != "" {
		return reply, db.Errorf(db.Invalid, "%s", reply.Error)
	}
	return reply, nil
}

// Backup writes an archive of the data folder to w. It has no time limit, because a
// large folder takes long. After an error, w has received a part of an archive, or nothing.
func (c *ControlClient) Backup(ctx context.Context, w io.Writer) (report store.BackupReport, err error) {
	resp, err := c.send(ctx, http.MethodGet, backupPath, nil)
	if err != nil {
		return report, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return report, backupRefusal(resp)
	}
	into := &sideWriter{Writer: w}
	if _, err := io.Copy(into, resp.Body); err != nil {
		if into.failed != nil {
			return report, fmt.Errorf("write the backup: %w", into.failed)
		}
		return report, fmt.Errorf("the server ended before the backup was complete: its log may say why: %w", err)
	}
	if why := resp.Trailer.Get(backupError); why != "" {
		if text, err := strconv.Unquote(why); err == nil {
			why = text
		}
		return report, fmt.Errorf("the server stopped the backup: %s", why)
	}
	if err := json.Unmarshal([]byte(resp.Trailer.Get(backupReport)), &report); err != nil {
		return report, fmt.Errorf("read what the backup leaves out: %w", err)
	}
	return report, nil
}

// backupRefusal returns the reason that the server sent instead of an archive.
func backupRefusal(resp *http.Response) error {
	var reply Reply
	err := json.NewDecoder(io.LimitReader(resp.Body, maxCall)).Decode(&reply)
	if err != nil || reply.Error == "" {
		return fmt.Errorf("the server made no backup: it answered %s", resp.Status)
	}
	return fmt.Errorf("the server made no backup: %s", reply.Error)
}
