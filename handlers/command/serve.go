package command

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"journeyman/handlers"
	"journeyman/handlers/serve"
	"journeyman/runner"
	"journeyman/runner/workspace"
)

// ServeFlags holds the flags of the command that serves, besides those of mail.
type ServeFlags struct {
	Addr          string        `default:"127.0.0.1:8080" help:"HTTP listen address; port 0 chooses one."`
	BaseURL       string        `help:"Base of every url field; http:// and the listen address by default." placeholder:"URL"`
	APIKey        string        `name:"api-key" help:"API key of the first owner, at least 16 characters; generated and printed once by default. Other users of this machine see it in the list of processes: prefer a file or the environment for every secret." placeholder:"KEY" secret:"the API key"`
	AdminEmail    string        `default:"owner@localhost" help:"Email address of the first owner."`
	AdminPassword string        `help:"Password of the first owner, at least 8 characters." placeholder:"PASSWORD" secret:"the password"`
	DrainDelay    time.Duration `default:"0s" min:"0" help:"Time at a shutdown between the end of readiness and the end of the listeners, so that load balancers can react."`
	serve.Certificate
	TrustedProxy []string `help:"Addresses or networks of proxies whose X-Forwarded-For the server trusts." placeholder:"ADDR"`
	MetricsToken string   `help:"Token for /metrics; without it, only clients on this machine get an answer." placeholder:"TOKEN" secret:"the metrics token"`
	Maintenance  bool     `help:"Start in maintenance: the server refuses changes and new work and sends nothing, but answers reads. The command 'maintenance off' ends it."`
	PprofAddr    string   `help:"Listen address of Go's profiler, which needs no key: choose an address that only you can reach." placeholder:"ADDR"`
	RateLimit    int      `default:"600" min:"0" help:"Requests a minute for each key; 0 turns the limit off."`

	MaxFileSize    int64 `default:"26214400" min:"1" help:"Largest attached file, in bytes; at most 1 GiB. A larger value than the default is also the limit of files in workspaces and of published files."`
	MaxFiles       int   `default:"20" min:"0" help:"Number of files in one request."`
	MaxRequestSize int64 `default:"104857600" min:"1" help:"Largest request with files, in bytes; never less than one file of the largest size needs."`

	Limits
}

// CheckUploads returns an error for a size of files that no workspace has room for.
func (c *ServeFlags) CheckUploads() error {
	if c.MaxFileSize > workspace.MaxTotalSize {
		return fmt.Errorf("--max-file-size: must be at most %d: that is the room of a whole workspace",
			workspace.MaxTotalSize)
	}
	return nil
}

// formRoom is the number of bytes that a request with one file has for all else.
const formRoom = 2 << 20

// UploadLimits returns the limits of files in requests. A request may always have one file of the largest size.
func (c *ServeFlags) UploadLimits() handlers.UploadLimits {
	return handlers.UploadLimits{FileSize: c.MaxFileSize, Files: c.MaxFiles,
		RequestSize: max(c.MaxRequestSize, c.MaxFileSize+formRoom)}
}

// Listen returns the listener for http or https. refused counts the connections that it refuses.
func (c *ServeFlags) Listen(p *Program, proxies serve.Proxies, refused *atomic.Int64) (net.Listener, error) {
	c.Folder = filepath.Join(p.Data, "acme")
	secure, err := c.TLS(p.Log)
	if err != nil {
		return nil, err
	}
	ln, err := (&net.ListenConfig{}).Listen(p.Context, "tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("--addr: %w", err)
	}
	// The gate counts connections below TLS, because a handshake already costs memory and time.
	ln = serve.NewListener(ln, c.MaxConnections, proxies, p.Log, refused)
	if secure != nil {
		ln = tls.NewListener(ln, secure)
	}
	return ln, nil
}

// ListenOperator opens the listeners for the operator of this machine: the socket for
// commands and, on request, the profiler.
func (c *ServeFlags) ListenOperator(p *Program, control http.Handler, rn *runner.Runner) (
	[]Listener, error) {
	ln, err := ListenControl(socketPath(p.Data, p.nodeName()))
	if err != nil {
		return nil, err
	}
	list := []Listener{{Listener: ln, Server: serve.NewServer(control, handlers.Refuse, rn.Streams.Close)}}
	if c.PprofAddr == "" {
		return list, nil
	}
	if ln, err = (&net.ListenConfig{}).Listen(p.Context, "tcp", c.PprofAddr); err != nil {
		return nil, fmt.Errorf("--pprof-addr: %w", err)
	}
	p.Log.Info("profiler", "address", "http://"+ln.Addr().String()+"/debug/pprof/")
	profiler := serve.NewServer(serve.Profiler(), handlers.Refuse, rn.Streams.Close)
	return append(list, Listener{Listener: ln, Server: profiler}), nil
}
