package dashboardtest

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// An EventReader reads the stream of changes of a browser.
type EventReader struct {
	*Browser
	Lines chan string // the data lines; closed at the end of the stream
	close func()
}

// EventsAddress matches the address of the stream of changes in a page.
var EventsAddress = regexp.MustCompile(`data-events="([^"]*)"`)

// Events opens the stream of a page.
func (b *Browser) Events(page string) *EventReader {
	b.T.Helper()
	m := EventsAddress.FindStringSubmatch(b.Get(page).Body)
	if m == nil {
		b.T.Fatalf("%s names no stream", page)
	}
	return b.Stream(m[1])
}

// Stream opens the stream of changes at an address.
func (b *Browser) Stream(address string) *EventReader {
	b.T.Helper()
	ctx, cancel := context.WithCancel(b.T.Context())
	b.T.Cleanup(cancel)
	resp, err := b.Client.Do(b.Request(http.MethodGet, address, "", "Accept", "text/event-stream").WithContext(ctx))
	b.OK(err)
	if resp.StatusCode != http.StatusOK {
		b.T.Fatalf("the stream answers %d", resp.StatusCode)
	}
	e := &EventReader{b, make(chan string), cancel}
	go func() {
		defer close(e.Lines)
		defer resp.Body.Close()
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
				select {
				case e.Lines <- data:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return e
}

// Next returns the next event, or "" at the end of the stream.
func (e *EventReader) Next() string {
	e.T.Helper()
	select {
	case line := <-e.Lines:
		return line
	case <-time.After(time.Minute):
		e.T.Fatal("no event came")
		return ""
	}
}

// An Update is an event of the live page: see live.js.
type Update struct {
	ID    string
	HTML  [][]any
	Lists [][]any
}

// Live returns the updates of a task's page up to the first one for which done returns true, or
// all.
func (b *Browser) Live(address, lastID string, done func(Update) bool) (list []Update) {
	b.T.Helper()
	r := b.Request(http.MethodGet, address, "")
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	res, err := b.Client.Do(r)
	b.OK(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		b.T.Fatalf("%s answers %d", address, res.StatusCode)
	}
	id := ""
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if after, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = after
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		u := Update{ID: id}
		if err := json.Unmarshal([]byte(data), &u); err != nil {
			b.T.Fatalf("%v in %s", err, data)
		}
		if list = append(list, u); done != nil && done(u) {
			return list
		}
	}
	return list
}

// Text returns all HTML of an update.
func (u Update) Text() string {
	var b strings.Builder
	for _, piece := range u.HTML {
		b.WriteString(piece[1].(string))
	}
	return b.String()
}
