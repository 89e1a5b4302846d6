package command_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"journeyman/handlers"
	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/store"
	"journeyman/store/storetest"
)

// The benchmarks here go over real HTTP with client and service in one process, for
// profiles. The program .ci/bench measures a server by itself.

// A target is a server under load.
type target struct {
	url, key string
	cpu      func() time.Duration // used so far
}

func handlersTarget(b *testing.B) target {
	prices, err := model.LoadPrices("")
	if err != nil {
		b.Fatal(err)
	}
	st, log := storetest.Open(b, store.Options{}), slog.New(slog.DiscardHandler)
	_, key := storetest.Caller(b, st, "Acme", "ann@example.com", store.RoleOwner)
	web := httptest.NewUnstartedServer(nil)
	base := "http://" + web.Listener.Addr().String()
	rn := runner.New(runner.Config{Store: st, Model: offline.New(), Prices: prices, BaseURL: base, Log: log})
	if err := rn.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	web.Config.Handler = handlers.New(handlers.Config{Store: st, Runner: rn, BaseURL: base, Log: log})
	web.Start()
	b.Cleanup(func() {
		rn.Streams.Close()
		if err := rn.Stop(context.Background()); err != nil {
			b.Error(err)
		}
		web.CloseClientConnections()
		web.Close()
	})
	return target{base, key, func() time.Duration { return ownCPU(b) }}
}

func ownCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// newWorker creates a worker.
func (tg target) newWorker(b *testing.B) string {
	body, err := tg.request(ownClient, http.MethodPost, "/api/workers", `{"title":"Bench","instructions":"Help."}`)
	if err != nil {
		b.Fatal(err)
	}
	var v struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		b.Fatal(err)
	}
	return v.ID
}

func (tg target) request(c *http.Client, method, path, body string) ([]byte, error) {
	req, err := http.NewRequest(method, tg.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+tg.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, out)
	}
	return out, err
}

// load makes b.N requests with that many clients, each of which sends the next request after the
// answer to the last one. It reports the times.
func (tg target) load(b *testing.B, clients int, unit, method, path, body, says string) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, clients)
	var wg sync.WaitGroup
	before := tg.cpu()
	b.ResetTimer()
	for i := range clients {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				begun := time.Now()
				out, err := tg.request(c, method, path, body)
				if err != nil || !bytes.Contains(out, []byte(says)) {
					b.Errorf("%v: %s", err, out)
					return
				}
				took[i] = append(took[i], time.Since(begun))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	used := tg.cpu() - before
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), unit+"s/s")
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/"+unit)
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	}
}

// BenchmarkTask measures tasks from POST to the answer.
func BenchmarkTask(b *testing.B) {
	script, err := json.Marshal(offlineScript("say All is well."))
	if err != nil {
		b.Fatal(err)
	}
	run := func(b *testing.B, clients int, tg target) {
		body := `{"workerId":"` + tg.newWorker(b) + `","input":` + string(script) + `}`
		tg.load(b, clients, "task", http.MethodPost, "/api/tasks", body, `"output_text":"All is well."`)
	}
	for _, clients := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { run(b, clients, handlersTarget(b)) })
	}
}

// BenchmarkFanOut sends the events of a worker to 1,000 readers and one client that never reads.
func BenchmarkFanOut(b *testing.B) {
	const readers = 1000
	tg := handlersTarget(b)
	worker := tg.newWorker(b)
	var got atomic.Int64
	finished := make(chan struct{}, readers)
	for range readers {
		go countEvents(tg.subscribe(b, worker), &got, finished) // ends with the connection
	}
	tg.subscribe(b, worker) // and never read
	script, err := json.Marshal(offlineScript("say " + strings.Repeat("word ", 200)))
	if err != nil {
		b.Fatal(err)
	}
	body := `{"workerId":"` + worker + `","input":` + string(script) + `}`
	before := tg.cpu()
	b.ResetTimer()
	for range b.N {
		if _, err := tg.request(ownClient, http.MethodPost, "/api/tasks", body); err != nil {
			b.Fatal(err)
		}
		for range readers {
			<-finished
		}
	}
	b.StopTimer()
	n := float64(got.Load())
	b.ReportMetric(n/b.Elapsed().Seconds(), "deliveries/s")
	b.ReportMetric(float64((tg.cpu()-before).Nanoseconds())/n, "cpu-ns/delivery")
	b.ReportMetric(n/readers/float64(b.N), "events/task")
}

// subscribe opens a worker's stream on a new connection.
func (tg target) subscribe(b *testing.B, worker string) io.Reader {
	conn, err := net.Dial("tcp", strings.TrimPrefix(tg.url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET /api/workers/%s/stream HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n", worker, tg.key)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16<<10), nil) // the header arrives at once: the stream is open
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%v: %+v", err, resp)
	}
	return resp.Body
}

// countEvents counts the ends of events, and reports each end of a turn. It is cheap, so that the
// readers do not cost more than the server.
func countEvents(body io.Reader, got *atomic.Int64, finished chan<- struct{}) {
	end := []byte(`"type":"finish",`)
	buf := make([]byte, 16<<10)
	kept := 0 // bytes of the last read that may be the beginning of end
	for {
		n, err := body.Read(buf[kept:])
		if err != nil {
			return
		}
		b := buf[:kept+n]
		fresh := b[max(0, kept-1):]
		got.Add(int64(bytes.Count(fresh, []byte("\n\n"))))
		for range bytes.Count(b, end) {
			finished <- struct{}{}
		}
		kept = copy(buf, b[max(0, len(b)-len(end)+1):])
	}
}
