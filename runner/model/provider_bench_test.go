package model

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// slowProvider is set in the process that serves the slow model. It is a separate process,
// because its memory would otherwise be counted.
const slowProvider = "JOURNEYMAN_TEST_SLOW_PROVIDER"

const (
	slowCalls  = 500                    // concurrent calls
	slowFirst  = 500 * time.Millisecond // until the first token
	slowTokens = 100
	slowPace   = 20 * time.Millisecond // between tokens
)

// TestSlowProviderProcess is the model server of BenchmarkSlowProvider. In an ordinary test run
// it does nothing.
func TestSlowProviderProcess(t *testing.T) {
	if os.Getenv(slowProvider) == "" {
		return
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("http://" + ln.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the benchmark ends
		_ = ln.Close()
	}()
	_ = http.Serve(ln, http.HandlerFunc(serveSlowly))
}

// serveSlowly streams tokens that each contain the time at which they were sent.
func serveSlowly(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	claude := strings.HasSuffix(r.URL.Path, "/messages")
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	time.Sleep(slowFirst)
	if claude {
		_, _ = io.WriteString(w, claudeStart(oneUsage)+claudeEvent(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`))
	}
	for range slowTokens {
		text := strconv.FormatInt(time.Now().UnixNano(), 10)
		if claude {
			_, _ = io.WriteString(w, claudeEvent(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+text+`"}}`))
		} else {
			_, _ = io.WriteString(w, "data: "+chunk(`{"content":"`+text+`"}`)+"\n\n")
		}
		w.(http.Flusher).Flush()
		time.Sleep(slowPace)
	}
	if claude {
		_, _ = io.WriteString(w, claudeEnd("end_turn"))
	} else {
		_, _ = io.WriteString(w, sse(finished("stop"), usageChunk, done))
	}
}

// startSlowProvider starts the model server and returns its address.
func startSlowProvider(b *testing.B) string {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSlowProviderProcess$")
	cmd.Env = append(os.Environ(), slowProvider+"=1")
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

// BenchmarkSlowProvider runs many concurrent calls to a slow model. It measures the memory per
// call during the answer, and the delay of a token from the server to emit.
func BenchmarkSlowProvider(b *testing.B) {
	address := startSlowProvider(b)
	for name, m := range map[string]func() (Model, error){
		"openai": func() (Model, error) {
			return openOpenAI("m", Config{Getenv: environment("OPENAI_BASE_URL", address)}, defaultTimeouts())
		},
		"anthropic": func() (Model, error) {
			return openAnthropic("m", Config{Getenv: environment("ANTHROPIC_BASE_URL", address)}, defaultTimeouts())
		},
	} {
		b.Run(name, func(b *testing.B) {
			m, err := m()
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				benchSlowCalls(b, m)
			}
		})
	}
}

func benchSlowCalls(b *testing.B, m Model) {
	b.Helper()
	before := memoryInUse()
	goroutines := runtime.NumGoroutine()
	var midway, all sync.WaitGroup
	midway.Add(slowCalls)
	delays := make([][]time.Duration, slowCalls)
	for i := range slowCalls {
		all.Go(func() {
			delays[i] = make([]time.Duration, 0, slowTokens)
			_, err := m.Generate(context.Background(), Request{Instructions: "Be brief.", Messages: []Message{user("hi")}}, func(d Delta) {
				if sent, err := strconv.ParseInt(d.Text, 10, 64); err == nil {
					delays[i] = append(delays[i], time.Since(time.Unix(0, sent)))
				}
				if len(delays[i]) == slowTokens/2 {
					midway.Done()
				}
			})
			if err != nil {
				b.Error(err)
			}
		})
	}
	midway.Wait()
	running := runtime.NumGoroutine()
	during := memoryInUse()
	all.Wait()
	tokens := slices.Concat(delays...)
	slices.Sort(tokens)
	b.ReportMetric(float64(during-before)/slowCalls/1024, "KB/call")
	b.ReportMetric(float64(running-goroutines)/slowCalls, "goroutines/call")
	b.ReportMetric(float64(tokens[len(tokens)/2].Microseconds())/1000, "ms/token-p50")
	b.ReportMetric(float64(tokens[len(tokens)*99/100].Microseconds())/1000, "ms/token-p99")
}

// memoryInUse returns the size of heap and stacks after a garbage collection, in bytes.
func memoryInUse() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapInuse + s.StackInuse)
}
