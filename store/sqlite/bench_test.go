package sqlite_test

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"journeyman/store/engine"
	"journeyman/store/sqlite"
)

// BenchmarkWriter writes a row of 250 bytes and one index entry an operation, with
// as many submitters as its name says: in groups, and then with a transaction for
// each on the same connection. x-single is how many times faster the groups are.
func BenchmarkWriter(b *testing.B) {
	for _, submitters := range []int{1, 64, 512} {
		b.Run(strconv.Itoa(submitters), func(b *testing.B) {
			db := open(b)
			detail := strings.Repeat("d", 150)
			op := func(tx engine.Tx) error {
				_, err := tx.Exec(`INSERT INTO log (organization, detail, created_at) VALUES ('org_01', ?, 1)`, detail)
				return err
			}
			perOp := func(n int) float64 {
				start := time.Now()
				submit(b, db, submitters, n, op)
				return float64(time.Since(start)) / float64(n)
			}
			perOp(2 * submitters) // prepares
			b.ResetTimer()
			grouped := perOp(b.N)
			b.StopTimer()
			db.SetMaxBatch(1)
			single := perOp(min(b.N, 3000))
			b.ReportMetric(single/grouped, "x-single")
			b.ReportMetric(1e9/grouped, "ops/s")
		})
	}
}

// submit runs op n times, from so many goroutines.
func submit(b *testing.B, db *sqlite.DB, submitters, n int, op func(tx engine.Tx) error) {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range submitters {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := db.Write(b.Context(), engine.Serializable, op); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
