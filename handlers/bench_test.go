package handlers_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The benchmarks here go over real HTTP. Those named binary measure the program by
// itself: cpu-µs is what its process used, without the client. Those named handlers
// have client and service in one process, for profiles.

// A target is what a benchmark puts load on.
type target struct {
	url, key string
	cpu      func() time.Duration // used so far
}

func binaryTarget(b *testing.B, s *instance) target {
	return target{s.url, s.key, func() time.Duration { return processCPU(b, s.cmd.Process.Pid) }}
}

func handlersTarget(b *testing.B) target {
	s := newServer(b)
	return target{s.url, s.key, func() time.Duration { return ownCPU(b) }}
}

func ownCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// processCPU reads the time of all threads of a process. The kernel counts in
// hundredths of a second there (proc_pid_stat(5)).
func processCPU(b *testing.B, pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		b.Fatalf("%s", stat)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// newWorker makes a worker.
func (tg target) newWorker(b *testing.B) string {
	body, err := tg.request(http.DefaultClient, http.MethodPost, "/api/workers", `{"title":"Bench","instructions":"Help."}`)
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

// load makes b.N requests with so many clients, each its next when it has the
// answer to the one before, and reports how that went.
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

// BenchmarkTask takes tasks from POST to the answer.
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
		b.Run(fmt.Sprintf("binary/clients=%d", clients), func(b *testing.B) {
			run(b, clients, binaryTarget(b, serve(b, b.TempDir())))
		})
	}
	b.Run("handlers/clients=32", func(b *testing.B) { run(b, 32, handlersTarget(b)) })
}

// BenchmarkList reads pages of tasks and run views, where there are few tasks and
// where there are many.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{1000, manyTasksCount} {
		b.Run(fmt.Sprintf("binary/tasks=%d", n), func(b *testing.B) {
			s, _ := manyTasks(b, n)
			for name, path := range map[string]string{"page": "/api/tasks?limit=50", "run": "/api/workers/" + newestWorker(b, s)} {
				b.Run(name, func(b *testing.B) {
					binaryTarget(b, s).load(b, 16, "request", http.MethodGet, path, "", "wrk_")
				})
			}
		})
	}
}

func newestWorker(b *testing.B, s *instance) string {
	a, err := s.send(b.Context(), http.MethodGet, "/api/workers", nil)
	if err != nil {
		b.Fatal(err)
	}
	var list struct{ Items []struct{ ID string } }
	if err := json.Unmarshal(a.body, &list); err != nil || len(list.Items) == 0 {
		b.Fatalf("%v: %s", err, a.body)
	}
	return list.Items[0].ID
}

// BenchmarkFanOut sends what a worker does to 1,000 readers of its stream and one
// that never reads.
func BenchmarkFanOut(b *testing.B) {
	b.Run("binary", func(b *testing.B) { fanOut(b, binaryTarget(b, serve(b, b.TempDir()))) })
	b.Run("handlers", func(b *testing.B) { fanOut(b, handlersTarget(b)) })
}

func fanOut(b *testing.B, tg target) {
	const readers = 1000
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
		if _, err := tg.request(http.DefaultClient, http.MethodPost, "/api/tasks", body); err != nil {
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

// subscribe opens a worker's stream on a connection of its own.
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
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16<<10), nil) // the head comes at once: the stream is open
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%v: %+v", err, resp)
	}
	return resp.Body
}

// countEvents counts what ends like an event, and tells of each end of a turn. It
// is cheap, so that the readers do not cost more than the service.
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

// BenchmarkStart starts the program on a data folder that has been used.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	s := serve(b, dir)
	s.mustPost(b, "/api/tasks", map[string]any{"input": offlineScript("say hello")})
	s.stop(b)
	var took time.Duration
	b.ResetTimer()
	for range b.N {
		begun := time.Now()
		s := serve(b, dir)
		took += time.Since(begun)
		s.kill()
	}
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "listening-ms")
}

// BenchmarkIdle measures the memory of the program when it has nothing to do: just
// started, and after work.
func BenchmarkIdle(b *testing.B) {
	for range b.N {
		s := serve(b, b.TempDir())
		b.ReportMetric(memoryMB(b, s, "VmRSS"), "fresh-MB")
		b.ReportMetric(memoryMB(b, s, "RssAnon"), "fresh-own-MB")
		worker := s.mustPost(b, "/api/workers", map[string]any{"title": "Bench"}).ID
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				for range 30 {
					if _, err := s.post(b.Context(), "/api/tasks", map[string]any{"workerId": worker, "input": offlineScript("say hello")}); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		b.ReportMetric(memoryMB(b, s, "VmRSS"), "used-MB")
		b.ReportMetric(memoryMB(b, s, "RssAnon"), "used-own-MB")
		s.kill()
	}
}

// memoryMB reads one of the figures that the kernel has of the program's memory
// (proc_pid_status(5)): VmRSS is all of it, RssAnon without what is only mapped
// from the binary and can be dropped at any time.
func memoryMB(b *testing.B, s *instance, name string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), name+":")
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kb / 1024
}
