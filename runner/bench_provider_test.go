//go:build unix

package runner_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
)

// slowServer is an environment variable that is set for the model server's process. In this
// process, the server's memory would count as memory of the turns.
const slowServer = "JOURNEYMAN_TEST_SLOW_SERVER"

const (
	slowTurns  = 500             // at once
	slowFirst  = 2 * time.Second // until the first token
	slowPace   = 20 * time.Millisecond
	slowTokens = 150
)

// TestSlowServerProcess is the model server of BenchmarkTurns. In a normal test run it does
// nothing.
func TestSlowServerProcess(t *testing.T) {
	if os.Getenv(slowServer) == "" {
		return
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("http://" + ln.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the benchmark
		_ = ln.Close()
	}()
	_ = http.Serve(ln, http.HandlerFunc(serveSlowly))
}

// serveSlowly streams tokens. Each token contains its send time.
func serveSlowly(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Connection", "close") // idle connections would count as leaks
	w.WriteHeader(http.StatusOK)
	flush := w.(http.Flusher).Flush
	flush()
	time.Sleep(slowFirst)
	for range slowTokens {
		_, _ = fmt.Fprintf(w, "data: {\"model\":\"slow\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" <%d>\"}}]}\n\n", time.Now().UnixNano())
		flush()
		time.Sleep(slowPace)
	}
	_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":9}}\n\ndata: [DONE]\n\n")
}

func startSlowServer(b *testing.B) string {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSlowServerProcess$")
	cmd.Env = append(os.Environ(), slowServer+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// BenchmarkTurns runs many turns at once against a slow model server over HTTP. Each turn has a
// reader of its stream. The benchmark measures a turn's memory in the middle of its answer. It also
// measures the delay of a token from the server to the reader.
func BenchmarkTurns(b *testing.B) {
	address := startSlowServer(b)
	m, err := model.Open(model.Config{Model: "openai:slow", Getenv: func(name string) string {
		return map[string]string{"OPENAI_BASE_URL": address}[name]
	}})
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		benchmarkTurns(b, m)
	}
}

func benchmarkTurns(b *testing.B, m model.Model) {
	f := newFixture(b, withModel(m), func(c *runner.Config) { c.Concurrency = slowTurns })
	before, goroutines, worked := memory(), runtime.NumGoroutine(), cpuTime(b)
	var midway, all sync.WaitGroup
	midway.Add(slowTurns)
	delays := make([][]time.Duration, slowTurns)
	for i := range slowTurns {
		turn := f.accept("Take your time.")
		all.Go(func() { delays[i] = tokenDelays(b, f, turn, midway.Done) })
	}
	midway.Wait()
	running := runtime.NumGoroutine()
	during := memory()
	all.Wait()
	tokens := slices.Concat(delays...)
	slices.Sort(tokens)
	if len(tokens) != slowTurns*slowTokens {
		b.Fatalf("%d tokens came", len(tokens))
	}
	b.ReportMetric(float64((cpuTime(b)-worked).Microseconds())/float64(len(tokens)), "cpu-µs/token")
	b.ReportMetric(float64(during-before)/slowTurns/1024, "KB/turn")
	b.ReportMetric(float64(running-goroutines)/slowTurns, "goroutines/turn")
	b.ReportMetric(float64(tokens[len(tokens)/2].Microseconds())/1000, "ms/token-p50")
	b.ReportMetric(float64(tokens[len(tokens)*99/100].Microseconds())/1000, "ms/token-p99")
	f.stop()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > goroutines+20; runtime.Gosched() {
		if time.Now().After(deadline) {
			b.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), goroutines)
		}
	}
}

// cpuTime returns the processor time of this process. On a busy machine it is a better measure than
// delays.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var sentAt = regexp.MustCompile(`<(\d+)>`)

// tokenDelays reads a turn's stream to its end. It calls halfway after half of the tokens.
func tokenDelays(b *testing.B, f *fixture, turn store.Turn, halfway func()) []time.Duration {
	delays := make([]time.Duration, 0, slowTokens)
	s := f.Streams.Turn(turn)
	for {
		events, done, err := s.Next(context.Background())
		if err != nil {
			b.Error(err)
		}
		for _, e := range events {
			var chunk struct{ Delta string }
			_ = json.Unmarshal(e.Data, &chunk)
			for _, stamp := range sentAt.FindAllStringSubmatch(chunk.Delta, -1) {
				if nanos, err := strconv.ParseInt(stamp[1], 10, 64); err == nil {
					if delays = append(delays, time.Since(time.Unix(0, nanos))); len(delays) == slowTokens/2 {
						halfway()
					}
				}
			}
		}
		if done || err != nil {
			return delays
		}
	}
}
