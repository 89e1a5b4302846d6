package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"journeyman/store/engine"
	"journeyman/store/postgres/pgtest"
)

// BenchmarkWrite runs writes of 1 and of 6 statements, with 32 writes in parallel.
func BenchmarkWrite(b *testing.B) {
	for name, mode := range modes {
		for _, statements := range []int{1, 6} {
			b.Run(fmt.Sprintf("%s/%d", name, statements), func(b *testing.B) {
				db := openURL(b, pgtest.URL(b))
				var serial atomic.Int64
				b.SetParallelism(16) // per processor; 32 in total with two processors
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						err := db.Write(b.Context(), mode, func(tx engine.Tx) error {
							for range statements {
								if err := note(fmt.Sprint(serial.Add(1)))(tx); err != nil {
									return err
								}
							}
							return nil
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.StopTimer()
				b.ReportMetric(float64(db.Stats().Retries.Load())/float64(b.N), "retries/op")
			})
		}
	}
}
