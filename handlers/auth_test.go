package handlers_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"journeyman/handlers"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// TestUnauthorized sends every kind of invalid credentials.
func TestUnauthorized(t *testing.T) {
	is, s := onServer(t, idle)
	_, revoked := storetest.Caller(t, s.store, "Acme", "bob@example.com", people.RoleMember)
	if _, err := s.store.People.RevokeKey(t.Context(), people.Operator(), revoked); err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]string{
		"none":         "",
		"empty":        "Authorization: ",
		"no scheme":    "Authorization: " + s.key,
		"no key":       "Authorization: Bearer",
		"blank key":    "Authorization: Bearer   ",
		"basic":        "Authorization: Basic " + s.key,
		"two keys":     "Authorization: Bearer " + s.key + " " + s.key,
		"a list":       "Authorization: Bearer " + s.key + ",x",
		"unknown":      "Authorization: Bearer jm_live_" + strings.Repeat("a", 43),
		"cut off":      "Authorization: Bearer " + s.key[:len(s.key)-1],
		"longer":       "Authorization: Bearer " + s.key + "a",
		"other case":   "Authorization: Bearer " + strings.ToUpper(s.key),
		"huge":         "Authorization: Bearer " + strings.Repeat("a", 20000),
		"revoked":      "Authorization: Bearer " + revoked,
		"query":        "Authorization: Bearer ' OR 1=1 --",
		"other header": "X-Api-Key: " + s.key,
	} {
		for _, call := range []string{"GET /api/me", "POST /api/tasks", "GET /api/workers/x/stream", "DELETE /api/tasks/x"} {
			t.Run(name+" "+call, func(t *testing.T) {
				is := is.New(t)
				method, path, _ := strings.Cut(call, " ")
				got := s.as("").do(t, method, path, "", strings.Split(header, "\n")...)
				is.Equal(got.refused(), "401 unauthorized")
				is.Equal(got.header.Get("WWW-Authenticate"), `Bearer realm="journeyman"`)
				is.True(!strings.Contains(string(got.body), s.key)) // the answer does not repeat a key
			})
		}
	}
	right := "authorization: Bearer " + s.key
	is.Equal(s.as("").do(t, "GET", "/api/me", "", right, right).text("error"), "there are 2 Authorization headers: send one")
	for _, header := range []string{"Authorization: bearer " + s.key, "Authorization: BEARER  " + s.key} {
		is.Equal(s.as("").do(t, "GET", "/api/me", "", header).status, 200) // the scheme has no case (RFC 9110, section 11.1)
	}
}

// TestSameTaskIdElsewhere uses one client-chosen id in two organizations.
func TestSameTaskIdElsewhere(t *testing.T) {
	is, s := onServer(t)
	eve := s.stranger(t)
	s.run(t, fields{"taskId": "daily", "input": scripted("say ours")})
	is.Equal(eve.do(t, "GET", "/api/tasks/daily", "").status, 404)
	is.Equal(eve.do(t, "POST", "/api/tasks/daily/cancel", "").status, 404)
	eve.run(t, fields{"taskId": "daily", "input": scripted("say theirs")})
	is.Equal(s.must(t, "GET", "/api/tasks/daily", "").text("turns.0.outputText"), "ours")
	is.Equal(eve.must(t, "GET", "/api/tasks/daily", "").text("turns.0.outputText"), "theirs")
	is.Equal(eve.must(t, "GET", "/api/tasks/daily", "").at("task.totals.turnCount"), 1.0)
}

// TestRevocation revokes a key while requests and open streams use it.
func TestRevocation(t *testing.T) {
	is, s := onServer(t, withTiming(handlers.Timing{CheckEvery: 20 * time.Millisecond}))
	guest, _ := s.member(t, "bob@example.com")
	id := guest.newWorker(t, fields{})
	path := "/api/workers/" + id
	guest.do(t, "POST", "/api/tasks", encode(fields{"workerId": id, "input": scripted("wait 1h")}), "Prefer: respond-async")
	wide, task := guest.open(t, "GET", path+"/stream", ""), guest.open(t, "GET", path+"?stream=true", "")
	is.Equal(guest.do(t, "GET", "/api/me", "").status, 200)
	_, err := s.store.People.RevokeKey(t.Context(), people.Operator(), guest.key)
	is.NoErr(err)
	is.Equal(guest.do(t, "GET", "/api/me", "").refused(), "401 unauthorized")
	is.True(!wide.ended(t)) // the stream ended without a [DONE]
	is.True(!task.ended(t))
}

// TestSessionStreams checks that a signed-in browser reads on after several permission checks,
// until it signs out.
func TestSessionStreams(t *testing.T) {
	is, s := onServer(t, withTiming(handlers.Timing{CheckEvery: 10 * time.Millisecond}))
	id := s.newWorker(t, fields{})
	path := "/api/workers/" + id
	token, err := s.store.People.CreateSession(t.Context(), s.owner.Caller, "Browser/1")
	is.NoErr(err)
	_, sessionID, err := s.store.People.SessionIdentity(t.Context(), token)
	is.NoErr(err)
	cookie := "Cookie: " + handlers.SessionCookie + "=" + token
	s.must(t, "POST", path, encode(fields{"input": scripted("wait 200ms", "say heard")}))
	browser := s.as("")
	wide := browser.open(t, "GET", path+"/stream", "", cookie)
	is.True(browser.open(t, "GET", path+"?stream=true", "", cookie).ended(t)) // with a [DONE]
	s.run(t, fields{"workerId": id, "input": scripted("say again")})
	wide.until(t, `"delta":"again`)
	is.NoErr(s.store.People.EndSession(t.Context(), s.owner.Caller, sessionID))
	is.True(!wide.ended(t)) // the stream ended without a [DONE]
}

// TestClosedToReader removes a member of a worker: the member's streams end.
func TestClosedToReader(t *testing.T) {
	is, s := onServer(t, withTiming(handlers.Timing{CheckEvery: 20 * time.Millisecond}))
	guest, bob := s.member(t, "bob@example.com")
	id := s.newWorker(t, fields{"visibility": "private"})
	path := "/api/workers/" + id
	s.must(t, "PUT", path+"/members/"+bob.UserID, "")
	s.must(t, "POST", path, encode(fields{"input": scripted("wait 1h")}))
	wide, task := guest.open(t, "GET", path+"/stream", ""), guest.open(t, "GET", path+"?stream=true", "")
	still := s.open(t, "GET", path+"/stream", "")
	s.must(t, "DELETE", path+"/members/"+bob.UserID, "")
	is.True(!wide.ended(t))
	is.True(!task.ended(t))
	s.run(t, fields{"workerId": id, "input": scripted("say heard")})
	still.until(t, `"delta":"heard`) // others read on
}

// TestEndOfIdleStream ends a stream when the deadline of its last write is over: the client still gets
// the end of the body.
func TestEndOfIdleStream(t *testing.T) {
	is, s := onServer(t, withTiming(handlers.Timing{WriteIn: 300 * time.Millisecond, CheckEvery: 2 * time.Second}))
	guest, _ := s.member(t, "bob@example.com")
	id := guest.newWorker(t, fields{})
	wide := guest.open(t, "GET", "/api/workers/"+id+"/stream", "")
	guest.run(t, fields{"workerId": id, "input": scripted("say heard")})
	wide.until(t, `"delta":"heard`)
	_, err := s.store.People.RevokeKey(t.Context(), people.Operator(), guest.key)
	is.NoErr(err)
	_, err = io.Copy(io.Discard, wide.lines)
	is.NoErr(err) // the body is complete
}

// TestRateLimit uses up a key's burst, waits, and checks that other keys are not limited.
func TestRateLimit(t *testing.T) {
	now := newClock()
	is, s := onServer(t, idle, func(set *settings) { set.API.RateLimit, set.API.Now = 600, now.Now })
	other := s.stranger(t)
	for i := range 60 {
		got := s.must(t, "GET", "/api/me", "")
		is.Equal(got.header.Get("RateLimit-Limit"), "600")
		is.Equal(got.header.Get("RateLimit-Remaining"), strconv.Itoa(59-i))
		is.Equal(got.header.Get("RateLimit-Reset"), strconv.Itoa((i+10)/10))
	}
	for _, call := range []string{"GET /api/me", "POST /api/tasks", "GET /api/nothing/else"} {
		method, path, _ := strings.Cut(call, " ")
		got := s.do(t, method, path, "")
		if strings.Contains(path, "nothing") {
			is.Equal(got.refused(), "404 not_found") // the request does not count against the key's limit
			continue
		}
		is.Equal(got.refused(), "429 rate_limited")
		is.Equal(got.header.Get("Retry-After"), "1")
		is.Equal(got.header.Get("retry-after-ms"), "100")
		is.Equal(got.header.Get("RateLimit-Remaining"), "0")
		is.Equal(got.header.Get("x-should-retry"), "") // it may succeed later
	}
	is.Equal(other.do(t, "GET", "/api/me", "").status, 200)
	is.Equal(s.as("").do(t, "GET", "/healthz", "").status, 200)
	now.advance(99 * time.Millisecond)
	is.Equal(s.do(t, "GET", "/api/me", "").status, 429)
	now.advance(time.Millisecond)
	is.Equal(s.do(t, "GET", "/api/me", "").status, 200)
	is.Equal(s.do(t, "GET", "/api/me", "").status, 429)
	now.advance(time.Hour) // long enough for the limiter to remove the key
	is.Equal(s.must(t, "GET", "/api/me", "").header.Get("RateLimit-Remaining"), "59")
}

// TestRateLimitAtOnce sends many concurrent requests that share one burst.
func TestRateLimitAtOnce(t *testing.T) {
	now := newClock()
	is, s := onServer(t, idle, func(set *settings) { set.API.RateLimit, set.API.Now = 30, now.Now })
	var wg sync.WaitGroup
	statuses := make(chan int, 50)
	for range 50 {
		wg.Go(func() { statuses <- s.do(t, "GET", "/api/me", "").status })
	}
	wg.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	is.Equal(fmt.Sprint(count), "map[200:20 429:30]") // a burst of at least 20
}

// TestCreditCap checks that new turns are refused above an organization's cap, and that clients
// must not retry.
func TestCreditCap(t *testing.T) {
	is, s := onServer(t)
	zero := 0.0
	storetest.CapCredits(t, s.store, s.owner.Caller, &zero)
	id := s.newWorker(t, fields{})
	for _, call := range [][2]string{{"/api/tasks", `{"input":"x"}`}, {"/api/workers", `{"input":"x"}`}, {"/api/workers/" + id, `{"input":"x"}`}} {
		is.Equal(s.do(t, "POST", call[0], call[1]).refused(), "402 credit_cap")
	}
	is.Equal(s.do(t, "POST", "/api/workers", `{"prompt":"Someone who checks invoices."}`).refused(), "402 credit_cap")
	is.Equal(s.do(t, "POST", "/api/workers", `{}`).status, 200) // costs nothing
	is.Equal(s.stranger(t).do(t, "POST", "/api/tasks", `{"input":"x"}`).status, 200)
}

// TestQueueFull checks that turns are refused when the queue is full.
func TestQueueFull(t *testing.T) {
	is, s := onServer(t, idle, func(set *settings) { set.Store.QueueLimit = 2 })
	for range 2 {
		is.Equal(s.do(t, "POST", "/api/tasks", `{"input":"x"}`, "Prefer: respond-async").status, 202)
	}
	got := s.do(t, "POST", "/api/tasks", `{"input":"x"}`, "Idempotency-Key: later")
	is.Equal(got.refused(), "503 busy")
	is.Equal(got.header.Get("Retry-After"), "1")
	is.Equal(got.header.Get("retry-after-ms"), "1000")
	other := s.stranger(t).do(t, "POST", "/api/tasks", `{"input":"x"}`, "Prefer: respond-async")
	is.Equal(other.status, 202) // another organization has its own limit
	first := s.must(t, "GET", "/api/tasks", "").text("items.0.id")
	s.must(t, "POST", "/api/tasks/"+first+"/cancel", "")
	again := s.do(t, "POST", "/api/tasks", `{"input":"x"}`, "Idempotency-Key: later", "Prefer: respond-async")
	is.Equal(again.status, 202) // the refusal was not stored
	is.Equal(again.header.Get("Idempotency-Replayed"), "")
}

// TestStoreFails checks that an internal error is answered with 500, without its reason.
func TestStoreFails(t *testing.T) {
	is, s := onServer(t, idle)
	is.NoErr(s.store.Close())
	for _, call := range []string{"GET /api/tasks", "POST /api/tasks"} {
		method, path, _ := strings.Cut(call, " ")
		got := s.do(t, method, path, `{"input":"x"}`)
		is.Equal(got.status, http.StatusInternalServerError)
		is.Equal(got.text("code"), "internal")
		is.True(!strings.Contains(string(got.body), "closed"))
	}
}
