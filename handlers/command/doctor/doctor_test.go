package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"golang.org/x/net/dns/dnsmessage"

	"journeyman/handlers/command"
	"journeyman/handlers/command/doctor"
	"journeyman/runner/backup"
	"journeyman/store"
	"journeyman/store/objects"
	"journeyman/store/objects/objectstest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// A result is the output of doctor with --json.
type result struct {
	OK       bool
	Sections []struct {
		Title  string
		Checks []struct{ Name, Status, Detail, Advice string }
	}
}

// examine runs doctor and returns the status and text of each check, by "section/name".
func examine(t *testing.T, d *doctor.Examiner, p *command.Program) (map[string]string, map[string]string) {
	t.Helper()
	is := is.New(t)
	p.Model, p.Concurrency, p.Env = "offline", 1, command.NewEnvironment(func(string) string { return "" })
	d.JSON = true
	err := d.Run(p)
	var r result
	is.NoErr(json.Unmarshal(p.Stdout.(*bytes.Buffer).Bytes(), &r))
	is.Equal(err == nil, r.OK)
	statuses, texts := map[string]string{}, map[string]string{}
	for _, s := range r.Sections {
		for _, c := range s.Checks {
			name := s.Title + "/" + c.Name
			statuses[name], texts[name] = c.Status, c.Detail+" "+c.Advice
			if c.Status == "failed" {
				is.True(!r.OK)                                      // the exit status reports it
				is.True(c.Advice != "" || s.Title == "Data folder") // the advice; that of the folder is in its detail
			}
		}
	}
	return statuses, texts
}

// serveControl serves commands for a data folder, as its server does.
func serveControl(t testing.TB, st *store.Store) {
	t.Helper()
	ln, err := command.ListenControl(filepath.Join(st.Dir(), "control.sock"))
	is.New(t).NoErr(err)
	web := httptest.NewUnstartedServer(command.Control(command.DataFolder{Store: st}, slog.New(slog.DiscardHandler)))
	_ = web.Listener.Close()
	web.Listener = ln
	web.Start()
	t.Cleanup(web.Close)
}

// quiet returns a doctor for a server without a port and mail.
func quiet() *doctor.Examiner { return &doctor.Examiner{Addr: "127.0.0.1:0"} }

func TestDoctorOnMailDomain(t *testing.T) {
	t.Parallel()
	good := map[string]string{"MX mail.test.": "mx.mail.test.", "A mx.mail.test.": "192.0.2.7",
		"PTR 7.2.0.192.in-addr.arpa.": "mx.mail.test.", "TXT mail.test.": "v=spf1 mx -all",
		"TXT _dmarc.mail.test.": "v=DMARC1; p=none"}
	for name, tt := range map[string]struct {
		lacks []string
		found map[string]string // status and a word of each check
	}{
		"all there": {nil, map[string]string{"MX": "ok mx.mail.test", "address": "ok 192.0.2.7", "PTR": "ok mx.mail.test",
			"SPF": "ok v=spf1", "DMARC": "ok v=DMARC1"}},
		"no MX": {[]string{"MX mail.test.", "TXT mail.test."},
			map[string]string{"MX": "failed add an MX record", "SPF": "warning v=spf1"}},
		"no A": {[]string{"A mx.mail.test.", "TXT _dmarc.mail.test."},
			map[string]string{"address": "failed add an A or AAAA record", "DMARC": "warning v=DMARC1"}},
		"no PTR": {[]string{"PTR 7.2.0.192.in-addr.arpa."}, map[string]string{"PTR": "warning reverse name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			records := maps.Clone(good)
			for _, k := range tt.lacks {
				delete(records, k)
			}
			d := quiet()
			d.SMTPAddr, d.MailDomain, d.Resolver = "127.0.0.1:0", "mail.test", serveDNS(t, records)
			statuses, texts := examine(t, d, programOn(t, t.TempDir()))
			for check, want := range tt.found {
				status, word, _ := strings.Cut(want, " ")
				is.Equal(statuses["Mail/"+check], status)             // check
				is.True(strings.Contains(texts["Mail/"+check], word)) // the finding, or the advice
			}
		})
	}
}

// TestDoctorOffline has no DNS: nothing is known, so no check fails.
func TestDoctorOffline(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := quiet()
	d.SMTPAddr, d.MailDomain = "127.0.0.1:0", "mail.test"
	d.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("network is unreachable")
	}}
	statuses, _ := examine(t, d, programOn(t, t.TempDir()))
	for _, name := range []string{"Mail/MX", "Mail/SPF", "Mail/DMARC", "Mail/relay", "Base URL/address", "Ports/http"} {
		is.Equal(statuses[name], "skipped") // name
	}
	is.Equal(statuses["Data folder/permissions"], "warning") // a folder of a test is open to others
	is.Equal(statuses["Disk/free space"] == "", false)
	is.Equal(statuses["Clock/file system"], "ok")
}

func TestDoctorOnPorts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	defer ln.Close()
	d := quiet()
	d.Addr, d.SMTPAddr = ln.Addr().String(), "no address"
	statuses, texts := examine(t, d, programOn(t, t.TempDir()))
	is.Equal(statuses["Ports/http"], "failed")
	is.True(strings.Contains(texts["Ports/http"], "is held by")) // the check names the process
	is.Equal(statuses["Ports/smtp"], "failed")
}

// TestDoctorOnBackups checks the place of backups and their encryption.
func TestDoctorOnBackups(t *testing.T) {
	t.Parallel()
	const key = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	file := filepath.Join(t.TempDir(), "file")
	full := t.TempDir()
	for _, path := range []string{file, filepath.Join(full, "journeyman-20260510T030000Z-0a1b2c3d.tgz")} {
		is.New(t).NoErr(os.WriteFile(path, nil, 0o600))
	}
	for name, tt := range map[string]struct {
		storage                backup.Storage
		place, encryption, has string
	}{
		"none":           {backup.Storage{}, "skipped", "", "--backup-every"},
		"an empty place": {backup.Storage{To: t.TempDir()}, "warning", "warning", "first one"},
		"backups":        {backup.Storage{To: full, Recipient: []string{key}}, "ok", "ok", "holds 1 backups"},
		"no folder":      {backup.Storage{To: file + "/below"}, "failed", "warning", "not a directory"},
		"a passphrase":   {backup.Storage{To: full, Recipient: []string{"correct horse"}}, "failed", "", "passphrase cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := programOn(t, t.TempDir())
			p.Storage = tt.storage
			statuses, texts := examine(t, quiet(), p)
			is.Equal(statuses["Backups/place"], tt.place)
			is.Equal(statuses["Backups/encryption"], tt.encryption)
			is.True(strings.Contains(texts["Backups/place"], tt.has)) // the finding, or the advice
		})
	}
}

// TestDoctorOnBucket checks the bucket of files.
func TestDoctorOnBucket(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	bucket := objectstest.NewServer(t, time.Now)
	expect := func(place, status, has string) {
		t.Helper()
		p := programOn(t, t.TempDir())
		p.Blobs = place
		p.BlobsS3 = objects.Access{Endpoint: bucket.URL, Region: "us-east-1", AccessKey: "key", SecretKey: "a secret"}
		statuses, texts := examine(t, quiet(), p)
		is.Equal(statuses["Data folder/files"], status)
		is.True(strings.Contains(texts["Data folder/files"], has)) // the finding, or the advice
		is.True(!strings.Contains(texts["Data folder/files"], "a secret"))
	}
	expect("s3://"+objectstest.Bucket+"/jm", "ok", "s3://files/jm")
	expect("s3://", "failed", "names no bucket")
	bucket.SetRefuses(true)
	expect("s3://"+objectstest.Bucket+"/jm", "failed", "--blobs-s3-access-key")
}

func TestDoctorOnRelay(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := quiet()
	d.CheckRelay = func(context.Context) (string, error) { return "relay.test", nil }
	statuses, _ := examine(t, d, programOn(t, t.TempDir()))
	is.Equal(statuses["Mail/relay"], "ok")
	d.CheckRelay = func(context.Context) (string, error) { return "relay.test", errors.New("535 wrong password") }
	statuses, texts := examine(t, d, programOn(t, t.TempDir()))
	is.Equal(statuses["Mail/relay"], "failed")
	is.True(strings.Contains(texts["Mail/relay"], "535")) // the relay's own answer
}

// TestDoctorOnBaseURL runs beside a server, with different base URLs.
func TestDoctorOnBaseURL(t *testing.T) {
	t.Parallel()
	own := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/openapi.json", "/jm/api/openapi.json":
			_, _ = w.Write([]byte(`{"info":{"title":"Journeyman"}}`))
		case "/sign-in", "/jm/sign-in": // of a server that does not know the path
			_, _ = w.Write([]byte(`<link rel="stylesheet" href="/assets/style.css?a=1&amp;b=2">`))
		case "/assets/style.css":
			w.Header().Set("Content-Type", "text/css")
		}
	}
	plain := httptest.NewServer(http.HandlerFunc(own))
	defer plain.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(own)) // of an unknown authority
	defer secure.Close()
	pages := map[string]string{plain.URL: "ok", plain.URL + "/jm": "failed"}
	for url, want := range map[string]string{plain.URL: "ok", plain.URL + "/jm": "ok", other.URL: "failed", secure.URL: "failed",
		"http://user:secret@127.0.0.1:1": "failed", "127.0.0.1": "failed"} {
		is := is.New(t)
		st := storetest.Open(t, store.Options{})
		storetest.Caller(t, st, "Acme", "ann@example.com", people.RoleOwner)
		serveControl(t, st)
		d := quiet()
		d.BaseURL = url
		statuses, texts := examine(t, d, programOn(t, st.Dir()))
		is.Equal(statuses["Base URL/address"], want) // url
		is.Equal(statuses["Base URL/pages"], pages[url])
		is.True(!strings.Contains(texts["Base URL/address"], "secret")) // a password is not printed
		is.Equal(statuses["Data folder/lock"], "ok")                    // the server holds the lock
		is.Equal(statuses["Connected providers of models, at their last test/providers"], "skipped")
		is.True(strings.Contains(texts["Connected providers of models, at their last test/providers"], "none;")) // the server answers
		if url == secure.URL {
			is.True(strings.Contains(texts["Base URL/address"], "certificate is not valid")) // the reason is the certificate
		}
	}
}

// serveDNS answers queries from records, with keys such as "TYPE name.".
func serveDNS(t *testing.T, records map[string]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for buf := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return // the test has ended
			}
			if answer, err := answerDNS(buf[:n], records); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func answerDNS(question []byte, records map[string]string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	kind := strings.TrimPrefix(q.Type.String(), "Type")
	value, ok := records[kind+" "+q.Name.String()]
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
		return m.Pack()
	}
	var body dnsmessage.ResourceBody
	switch kind {
	case "MX":
		body = &dnsmessage.MXResource{Pref: 10, MX: dnsmessage.MustNewName(value)}
	case "A":
		body = &dnsmessage.AResource{A: [4]byte(net.ParseIP(value).To4())}
	case "PTR":
		body = &dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(value)}
	case "TXT":
		body = &dnsmessage.TXTResource{TXT: []string{value}}
	}
	m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60}, Body: body}}
	return m.Pack()
}
