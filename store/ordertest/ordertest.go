// Package ordertest compares values in tests whose failures show both values. is.True(n < 10) shows only the
// expression, so a reader of a failure learns neither n nor how far it is from the limit.
//
// Tests of every package use it. It imports no other package of this program, and the program does not import it.
package ordertest

import (
	"cmp"
	"fmt"

	"github.com/matryer/is"
)

// Below fails the test unless got < limit.
func Below[T cmp.Ordered](is *is.I, got, limit T) {
	if !(got < limit) { // NaN is below nothing, here and in the functions that follow
		is.Helper()
		is.NoErr(fmt.Errorf("%v is not below %v", got, limit))
	}
}

// AtMost fails the test unless got <= most.
func AtMost[T cmp.Ordered](is *is.I, got, most T) {
	if !(got <= most) {
		is.Helper()
		is.NoErr(fmt.Errorf("%v is more than %v", got, most))
	}
}

// Above fails the test unless got > limit.
func Above[T cmp.Ordered](is *is.I, got, limit T) {
	if !(got > limit) {
		is.Helper()
		is.NoErr(fmt.Errorf("%v is not above %v", got, limit))
	}
}

// AtLeast fails the test unless got >= least.
func AtLeast[T cmp.Ordered](is *is.I, got, least T) {
	if !(got >= least) {
		is.Helper()
		is.NoErr(fmt.Errorf("%v is less than %v", got, least))
	}
}

// Between fails the test unless least <= got and got <= most.
func Between[T cmp.Ordered](is *is.I, got, least, most T) {
	if !(got >= least && got <= most) {
		is.Helper()
		is.NoErr(fmt.Errorf("%v is not between %v and %v", got, least, most))
	}
}
