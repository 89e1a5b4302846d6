package admin

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"journeyman/handlers/dashboard/frame"
)

// The lifetime of a value, and the greatest number of values.
const (
	oneTimeLifetime = 5 * time.Minute
	maxOneTime      = 1000
)

// oneTime stores secrets between a form and the page that shows them: a new key, or a new link. The
// form is answered with a redirect, so that reloading the page creates no second key. Each value
// belongs to one session, can be taken once, and is only in memory.
type oneTime struct {
	now func() time.Time

	mu     sync.Mutex // guards values
	values map[onceKey]onceValue
}

type onceKey struct{ session, kind string }

type onceValue struct {
	value any
	until time.Time
}

// put stores a value for a session. It replaces an older value of the same kind.
func (o *oneTime) put(session, kind string, value any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.values == nil {
		o.values = map[onceKey]onceValue{}
	}
	maps.DeleteFunc(o.values, func(_ onceKey, v onceValue) bool { return o.now().After(v.until) })
	if len(o.values) >= maxOneTime {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(o.values)), func(a, b onceKey) int {
			return o.values[a].until.Compare(o.values[b].until)
		})
		delete(o.values, oldest)
	}
	o.values[onceKey{session, kind}] = onceValue{value, o.now().Add(oneTimeLifetime)}
}

// take returns and removes the value of a kind of a session. It returns nil if there is none, or if
// it has expired.
func (o *oneTime) take(session, kind string) any {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := onceKey{session, kind}
	v, found := o.values[key]
	delete(o.values, key)
	if !found || o.now().After(v.until) {
		return nil
	}
	return v.value
}

// nodeParameter is the parameter of an address with the id of the node that has the page's value. Any
// node may get the request for the page.
const nodeParameter = "node"

// hereOnly returns the address of a page with a value that only this node has.
func (d *Pages) hereOnly(address string) string {
	if !d.Store.Shared() {
		return address
	}
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + nodeParameter + "=" + url.QueryEscape(d.Runner.ID())
}

// forwardToNode lets the node that has the value of a page answer, and reports whether it has.
func (d *Pages) forwardToNode(w http.ResponseWriter, r *frame.Request) (answered bool) {
	return d.API.ForwardPageTo(w, r.Request, r.URL.Query().Get(nodeParameter))
}

// A justMade is a new value that a page shows once.
type justMade[T any] struct {
	Made T
	Gone bool // the value was shown already
}

// read reads the value of a kind. answered means that the node that has the value has sent the page.
func (j *justMade[T]) read(d *Pages, w http.ResponseWriter, r *frame.Request, kind string) (answered bool) {
	if !r.URL.Query().Has("made") {
		return false
	}
	if d.forwardToNode(w, r) {
		return true
	}
	value := d.once.take(r.SessionID, kind)
	j.Made, _ = value.(T)
	j.Gone = value == nil
	return false
}
