package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"journeyman/store"
)

// Admin is what the command line may do, on a data folder or through a running
// server alike.
type Admin interface {
	CreateKey(ctx context.Context, n store.NewKey) (secret string, err error)
	Keys(ctx context.Context, organizationName string) ([]store.Key, error)
	RevokeKey(ctx context.Context, which, remoteAddr string) (store.Key, error)
	RollKey(ctx context.Context, which, remoteAddr string) (k store.Key, secret string, err error)
	Users(ctx context.Context) ([]store.User, error)
	// ResetLink makes the address at which a user chooses a password, once.
	ResetLink(ctx context.Context, email string) (string, error)
	Backup(ctx context.Context, w io.Writer) error
}

// A DataFolder is an Admin of a store that this process has open.
type DataFolder struct {
	*store.Store
	BaseURL string // of the links it makes
}

// ResetLink makes the address at which a user chooses a password, once.
func (d DataFolder) ResetLink(ctx context.Context, email string) (string, error) {
	_, token, err := d.CreateReset(ctx, store.LinkReset, email)
	if err != nil {
		return "", err
	}
	return LinkAddress(d.BaseURL, store.LinkReset, token), nil
}

// LinkAddress is where a link of a kind leads.
func LinkAddress(baseURL string, kind store.LinkKind, token string) string {
	return baseURL + "/" + string(kind) + "/" + token
}

// A controlCall is a command on its way to a running server.
type controlCall struct {
	Create *store.NewKey `json:"create,omitempty"`
	List   *string       `json:"list,omitempty"`   // organization
	Revoke *string       `json:"revoke,omitempty"` // which key
	Roll   *string       `json:"roll,omitempty"`   // which key
	Users  bool          `json:"users,omitempty"`
	Reset  *string       `json:"reset,omitempty"` // whose password
}

// A controlReply is the answer to one.
type controlReply struct {
	Secret string       `json:"secret,omitempty"`
	Keys   []store.Key  `json:"keys,omitempty"`
	Users  []store.User `json:"users,omitempty"`
	Link   string       `json:"link,omitempty"`
	Error  string       `json:"error,omitempty"`
}

const backupPath = "/backup"

// Control serves commands on the data folder's socket. Whoever can open that owns
// the data folder, so it asks for no key.
func Control(admin Admin) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == backupPath {
			if err := admin.Backup(r.Context(), w); err != nil {
				panic(http.ErrAbortHandler) // the client must not take what it has for whole
			}
			return
		}
		var call controlCall
		var reply controlReply
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxJSON)).Decode(&call)
		if err == nil {
			reply, err = call.run(r.Context(), admin)
		}
		if err != nil {
			reply.Error = err.Error()
		}
		_ = respond(w, http.StatusOK, reply) // strings and times marshal
	})
}

func (c controlCall) run(ctx context.Context, admin Admin) (reply controlReply, err error) {
	switch {
	case c.Create != nil:
		reply.Secret, err = admin.CreateKey(ctx, *c.Create)
	case c.List != nil:
		reply.Keys, err = admin.Keys(ctx, *c.List)
	case c.Revoke != nil:
		var k store.Key
		k, err = admin.RevokeKey(ctx, *c.Revoke, "")
		reply.Keys = []store.Key{k}
	case c.Roll != nil:
		var k store.Key
		k, reply.Secret, err = admin.RollKey(ctx, *c.Roll, "")
		reply.Keys = []store.Key{k}
	case c.Users:
		reply.Users, err = admin.Users(ctx)
	case c.Reset != nil:
		reply.Link, err = admin.ResetLink(ctx, *c.Reset)
	default:
		err = store.Errorf(store.Invalid, "the running server does not know this command")
	}
	return reply, err
}

// ListenControl listens on a unix socket that only this user can open.
func ListenControl(path string) (net.Listener, error) {
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	ln, err := net.Listen("unix", short)
	if err != nil {
		return nil, err
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // short is gone by then; the next start removes the socket
	return ln, os.Chmod(path, 0o600)
}

// maxSocketPath is what the address of a unix socket has room for.
const maxSocketPath = 100

// shortPath is a name for path that a socket address has room for, valid until
// done is called.
func shortPath(path string) (short string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

// A ControlClient gives commands to a running server.
type ControlClient struct{ client *http.Client }

// NewControlClient makes a client of the socket at path.
func NewControlClient(path string) *ControlClient {
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

func (c *ControlClient) call(ctx context.Context, call controlCall) (reply controlReply, err error) {
	body, err := json.Marshal(call)
	if err != nil {
		return reply, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://control/", bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return reply, fmt.Errorf("the data folder is in use, and its server cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return reply, fmt.Errorf("read the server's answer: %w", err)
	}
	if reply.Error != "" {
		return reply, store.Errorf(store.Invalid, "%s", reply.Error)
	}
	return reply, nil
}

// CreateKey makes an API key.
func (c *ControlClient) CreateKey(ctx context.Context, n store.NewKey) (string, error) {
	reply, err := c.call(ctx, controlCall{Create: &n})
	return reply.Secret, err
}

// Keys lists API keys.
func (c *ControlClient) Keys(ctx context.Context, organizationName string) ([]store.Key, error) {
	reply, err := c.call(ctx, controlCall{List: &organizationName})
	return reply.Keys, err
}

// RevokeKey ends an API key. remoteAddr is not used: the server knows the caller
// as the command line.
func (c *ControlClient) RevokeKey(ctx context.Context, which, _ string) (store.Key, error) {
	reply, err := c.call(ctx, controlCall{Revoke: &which})
	if err != nil || len(reply.Keys) != 1 {
		return store.Key{}, err
	}
	return reply.Keys[0], nil
}

// RollKey makes the successor of an API key. remoteAddr is not used, as above.
func (c *ControlClient) RollKey(ctx context.Context, which, _ string) (store.Key, string, error) {
	reply, err := c.call(ctx, controlCall{Roll: &which})
	if err != nil || len(reply.Keys) != 1 {
		return store.Key{}, "", err
	}
	return reply.Keys[0], reply.Secret, nil
}

// Users lists users.
func (c *ControlClient) Users(ctx context.Context) ([]store.User, error) {
	reply, err := c.call(ctx, controlCall{Users: true})
	return reply.Users, err
}

// ResetLink makes the address at which a user chooses a password, once.
func (c *ControlClient) ResetLink(ctx context.Context, email string) (string, error) {
	reply, err := c.call(ctx, controlCall{Reset: &email})
	return reply.Link, err
}

// Backup writes the running server's data folder to w.
func (c *ControlClient) Backup(ctx context.Context, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://control"+backupPath, nil)
	if err != nil {
		return err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("the data folder is in use, and its server cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the server broke the backup off: its log says why: %w", err)
	}
	return nil
}
