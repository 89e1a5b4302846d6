package store_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"journeyman/store"
	"journeyman/store/storetest"
)

// BenchmarkTurn takes turns from accepted to finished, 32 at once: three writes
// each. cpu-µs/turn is what the whole process spends on one.
func BenchmarkTurn(b *testing.B) {
	s := storetest.Open(b, store.Options{QueueLimit: 1 << 30})
	who, _ := storetest.Caller(b, s, "Acme", "ann@acme.test", store.RoleOwner)
	w, _, err := s.CreateWorker(b.Context(), who.Caller, store.NewWorker{Instructions: strings.Repeat("Help. ", 100)}, store.Once{})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.StartRunner(b.Context(), "r1", time.Hour); err != nil {
		b.Fatal(err)
	}
	hash := make([]byte, 32)
	answer := strings.Repeat("An answer of some length. ", 40)
	before := processorTime(b)
	b.SetParallelism(16) // times the two processors
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := s.CreateTurn(b.Context(), store.NewTurn{Caller: who.Caller, WorkerID: w.ID, Input: "Summarise the attached report",
				Budget: store.BudgetStandard, Once: store.Once{KeyID: who.KeyID, Hash: hash}})
			if err != nil {
				b.Error(err)
				return
			}
			claims, err := s.ClaimTurns(b.Context(), "r1", 1)
			if err != nil || len(claims) != 1 {
				b.Errorf("%d claims, %v", len(claims), err)
				return
			}
			now := time.Now()
			step := store.Step{Parts: []store.Part{{Type: store.PartText, Text: answer}}, Finish: "stop", Model: "offline", StartedAt: now,
				CompletedAt: now, Usage: store.Usage{InputTokens: 300, OutputTokens: 200, ModelCost: 700}}
			_, err = s.FinishTurn(b.Context(), claims[0], &step, store.Outcome{Status: store.Completed, OutputText: answer, Duration: time.Second})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/turn")
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
