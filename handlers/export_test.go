package handlers

import (
	"net/http/httptest"
	"strconv"
	"time"
)

// LimitedKeys returns how many keys a rate limiter holds after requests of n keys.
func LimitedKeys(n int, now func() time.Time) (int, error) {
	l := newLimiter(600, now, nil)
	for i := range n {
		if err := l.take(httptest.NewRecorder(), strconv.Itoa(i)); err != nil {
			return 0, err
		}
	}
	return len(l.keys), nil
}

// MaxLimited is the largest number of keys in a rate limiter.
const MaxLimited = maxLimited

// UploadsUnderWay returns the number of upload shares in use.
func (a *API) UploadsUnderWay() int64 { return a.shares.uploads.Total() }

// SDKRoutes lists the endpoints that take the version of the AI SDK.
var SDKRoutes = sdkRoutes

// YAMLToJSON and YAMLText read and write exported workers.
var (
	YAMLToJSON = yamlToJSON
	YAMLText   = yamlText
)
