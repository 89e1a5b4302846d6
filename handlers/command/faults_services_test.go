//go:build linux

package command_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/matryer/is"
	"golang.org/x/net/dns/dnsmessage"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// faults skips a long test unless the environment asks for faults.
func faults(t testing.TB) {
	t.Helper()
	if os.Getenv("FAULTS") == "" {
		t.Skip("takes long: FAULTS=10 runs it")
	}
}

// A serviceFault is a fault of a service that the program uses.
type serviceFault struct {
	set setting
	// breaks breaks the service. mend ends the fault, and met counts how often the program met it.
	breaks func(w *world) (mend func(), met *atomic.Int64)
	// seen checks what users can see after the fault.
	seen func(w *world)
}

// memory bounds the growth of the program.
const memory = 128 << 20

// TestFaultServices breaks the external services while clients work. Their work is not delayed,
// users can see the fault, and pending work is done once the service is back.
func TestFaultServices(t *testing.T) {
	faults(t)
	t.Parallel()
	for name, f := range map[string]serviceFault{
		"a webhook receiver hangs":         {breaks: hangHook, seen: (*world).sawFailedDeliveries},
		"a webhook receiver answers 10 GB": {breaks: endlessHook},
		"the mail relay hangs":             {breaks: hangRelay, seen: (*world).sawFailedMails},
		"the mail relay is gone":           {breaks: refuseRelay, seen: (*world).sawFailedMails},
		"name servers hang":                nameFault("hang"),
		"name servers fail":                nameFault("fail"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var resolver *nameServer
			if f.set.relay != "" {
				resolver = newNameServer(t, f.set.how.wrap[0])
				f.set.how.wrap = resolver.wrap(t)
			}
			w := newWorld(t, "services", f.set)
			w.wait = 3 * time.Minute // a mail is retried after one minute
			before := w.now.resident(t)
			end := w.load()
			w.awaitAnswers(len(w.clients))
			mend, met := f.breaks(w)
			if resolver != nil {
				mend, met = func() { resolver.mode.Store("") }, &resolver.asked
			}
			w.answersAgain(5 * len(w.clients)) // clients still get answers
			storetest.Eventually(t, "somebody who meets the fault", func() bool { return met.Load() > 0 })
			w.ready(http.StatusOK)
			ordertest.Below(is, w.now.resident(t), before+memory) // the program needs too much memory
			mend()
			end()
			w.check()
			if f.seen != nil {
				f.seen(w)
			}
			w.end()
		})
	}
}

// hangHook accepts deliveries and does not answer.
func hangHook(w *world) (func(), *atomic.Int64) {
	mended, met := make(chan struct{}), &atomic.Int64{}
	w.hook.breaks(func(rw http.ResponseWriter, r *http.Request) {
		met.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-mended:
		case <-r.Context().Done():
		}
		rw.WriteHeader(http.StatusBadGateway)
	})
	return func() {
		w.hook.breaks(nil)
		close(mended)
	}, met
}

// endlessHook counts deliveries and answers 10 GB.
func endlessHook(w *world) (func(), *atomic.Int64) {
	met := &atomic.Int64{}
	w.hook.breaks(func(rw http.ResponseWriter, r *http.Request) {
		w.hook.note(r)
		met.Add(1)
		piece := make([]byte, 1<<20)
		for range 10 << 10 {
			if _, err := rw.Write(piece); err != nil {
				return
			}
		}
	})
	return func() { w.hook.breaks(nil) }, met
}

// hangRelay accepts connections and does not answer, until it closes them.
func hangRelay(w *world) (func(), *atomic.Int64) {
	mended, met := make(chan struct{}), &atomic.Int64{}
	w.relay.breaks(func() error {
		met.Add(1)
		<-mended
		return &smtp.SMTPError{Code: 421, Message: "I was asleep"}
	})
	return func() {
		w.relay.breaks(nil)
		close(mended)
	}, met
}

func refuseRelay(w *world) (func(), *atomic.Int64) {
	met := &atomic.Int64{}
	w.relay.breaks(func() error {
		met.Add(1)
		return &smtp.SMTPError{Code: 451, Message: "not today"}
	})
	return func() { w.relay.breaks(nil) }, met
}

// sawFailedDeliveries requires that users can read why deliveries failed.
func (w *world) sawFailedDeliveries() {
	if n := w.rows(`SELECT count(*) FROM webhook_executions WHERE request_status = 'error'
		AND (error_message <> '' OR response_status >= 500)`)[0][0]; n == "0" {
		w.t.Error("no delivery has failed, or nobody can see why")
	}
}

func (w *world) sawFailedMails() {
	if n := w.rows(`SELECT count(*) FROM outbound_emails WHERE attempts > 1`)[0][0]; n == "0" {
		w.t.Error("no mail had to be tried again")
	}
}

// ready requires that status of /readyz, and returns the answer.
func (w *world) ready(status int) string {
	w.t.Helper()
	a, err := w.now.send(w.t.Context(), http.MethodGet, "/readyz", nil)
	if err != nil || a.status != status {
		w.t.Errorf("/readyz answers %d, want %d: %v\n%s", a.status, status, err, a.body)
	}
	return string(a.body)
}

// resident returns the resident memory of the program.
func (p *program) resident(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	is.New(t).NoErr(err)
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	is.New(t).NoErr(err)
	return kib << 10
}

// nameFault returns a fault of the name server, in a mode of nameServer. The relay has a host name.
func nameFault(mode string) serviceFault {
	return serviceFault{set: setting{relay: "relay.faults.test", how: invocation{wrap: []string{mode}}},
		breaks: func(*world) (func(), *atomic.Int64) { return nil, nil }}
}

// A nameServer answers each query with 127.0.0.1, unless it is broken.
type nameServer struct {
	net.PacketConn
	mode  atomic.Value // hang, fail or ""
	asked atomic.Int64
}

var nameServers atomic.Int64

// newNameServer starts a name server on its own address, because the port of name servers is fixed.
func newNameServer(t *testing.T, mode string) *nameServer {
	t.Helper()
	pc, err := net.ListenPacket("udp", fmt.Sprintf("127.53.%d.%d:53", os.Getpid()%250, 1+nameServers.Add(1)))
	is.New(t).NoErr(err)
	s := &nameServer{PacketConn: pc}
	s.mode.Store(mode)
	t.Cleanup(func() { _ = pc.Close() })
	go s.serve()
	return s
}

// wrap returns a command that runs the program with only this name server.
func (s *nameServer) wrap(t *testing.T) []string {
	t.Helper()
	host, _, err := net.SplitHostPort(s.LocalAddr().String())
	is.New(t).NoErr(err)
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	is.New(t).NoErr(os.WriteFile(conf, []byte("nameserver "+host+"\n"), 0o600))
	return []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, conf}
}

func (s *nameServer) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		s.asked.Add(1)
		mode := s.mode.Load()
		if mode == "hang" {
			continue
		}
		q := m.Questions[0]
		m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}
		m.Additionals = nil
		switch {
		case mode == "fail":
			m.RCode = dnsmessage.RCodeServerFailure
		case q.Type == dnsmessage.TypeA:
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
				Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
		}
		if b, err := m.Pack(); err == nil {
			_, _ = s.WriteTo(b, from) // a lost answer is requested again
		}
	}
}

// TestFaultProviders breaks the model provider in several ways. Its tasks wait and can be
// cancelled, other tasks run, and waiting tasks end once the provider is back.
func TestFaultProviders(t *testing.T) {
	faults(t)
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, fault := range map[string]http.HandlerFunc{
		"never answers": hang,
		"answers a byte a second": func(w http.ResponseWriter, r *http.Request) {
			for i := 0; r.Context().Err() == nil; i = (i + 1) % 40 {
				_, _ = io.WriteString(w, completion[i:i+1])
				_ = http.NewResponseController(w).Flush()
				<-time.After(time.Second)
			}
		},
		"resets": func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			}
		},
		"answers half": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, completion[:150]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newModelHost(t, fault)
			dir := t.TempDir()
			beginFolder(t, dir)
			how := invocation{env: []string{"OPENAI_BASE_URL=" + p.URL + "/v1", "OPENAI_API_KEY=sk-faults"}}
			s := how.serve(t, dir, testKey, serveArgs(dir, "--model", "openai:m")...)
			async := func(input string) seenRun {
				return s.mustPost(t, "/api/tasks", map[string]any{"input": input}, "Prefer", "respond-async")
			}
			waits, cancelled := async("first"), async("second")
			storetest.Eventually(t, "a call of the model", func() bool { return p.asked.Load() >= 2 })
			other := s.mustPost(t, "/api/workers", map[string]any{"title": "Other", "model": "offline"}).ID
			v := s.mustPost(t, "/api/tasks", map[string]any{"workerId": other, "input": offlineScript("say other")})
			is.Equal(v.OutputText, "other") // the work of another model goes on
			begun := time.Now()
			a, err := s.post(t.Context(), "/api/tasks/"+cancelled.Metadata.TaskID+"/cancel", nil)
			is.NoErr(expect(a, err))
			s.ended(t, cancelled)
			ordertest.Below(is, time.Since(begun), 20*time.Second) // the cancel waits for the provider
			is.Equal(s.mustGet(t, "/api/workers/"+waits.ID).Running, true)

			p.fault.Store(nil)
			p.CloseClientConnections() // as a restarted provider does
			is.Equal(s.ended(t, waits).OutputText, "all is well")
			is.Equal(s.mustGet(t, "/api/workers/"+waits.ID).Error, nil)
			s.stop(t)
			storetest.Sound(t, dir)
		})
	}
}
