package db

// NanosPerCredit is the number of nano-dollars in one credit: 0.01 US$.
const NanosPerCredit = 10_000_000

// Credits converts nano-dollars to credits.
func Credits(nanos int64) float64 { return float64(nanos) / NanosPerCredit }

// Dollars converts nano-dollars to US$.
func Dollars(nanos int64) float64 { return float64(nanos) / 1e9 }
