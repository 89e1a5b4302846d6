package nodes

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The headers of requests between nodes. The signature covers them, so no other client can use
// them.
const (
	// signatureHeader holds the time of a request, a nonce, and the signature. In an answer it holds the
	// verdict on the signature.
	signatureHeader = "Journeyman-Node"

	// clientHeader holds the address of the client whose request a node forwards.
	clientHeader = "Journeyman-Client"
)

// maxSkew bounds the age of a signature. It includes the difference between the clocks of two nodes.
const maxSkew = 30 * time.Second

// A signer signs requests to other nodes, and checks the signatures of their requests. Each signature is
// valid for one request, for one node, and for a short time.
type signer struct {
	secret string
	own    string // address of this node
	now    func() time.Time

	mu    sync.Mutex           // guards the fields below
	used  map[string]time.Time // times of requests, by nonce
	swept time.Time            // when old nonces were last removed
}

func newSigner(secret, own string, now func() time.Time) *signer {
	return &signer{secret: secret, own: own, now: now, used: map[string]time.Time{}, swept: now()}
}

// sign signs a request to the node with the given address. body is the whole body of a message, and
// empty for a forwarded request.
func (s *signer) sign(r *http.Request, node string, body []byte) {
	at := strconv.FormatInt(s.now().Unix(), 10)
	nonce := rand.Text()
	r.Header.Set(signatureHeader, at+" "+nonce+" "+s.sum(r, r.URL.RequestURI(), node, at, nonce, body))
}

// sum returns the signature, in hexadecimal, of a request to the node with the given address.
func (s *signer) sum(r *http.Request, uri, node, at, nonce string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(s.secret))
	fmt.Fprintf(mac, "journeyman node 1\n%s\n%s\n%s\n%s\n%s\n%q\n%x\n", r.Method, node, uri, at, nonce,
		r.Header.Values(clientHeader), sha256.Sum256(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// A signature is the parsed signatureHeader of a request.
type signature struct {
	at               time.Time
	time, nonce, sum string // the parts of the header, as texts
}

// A verdict is what a node says about the signature of a request that it has received.
type verdict string

const (
	fits        verdict = "ok"
	wrongClock  verdict = "clock"  // the signature is old, or of the future
	wrongSecret verdict = "secret" // it was made with another secret, for another node or for another request
)

// find returns the signature of a request. Its verdict is about the form and the time of the signature only: it
// does not say whether the sum is right.
func (s *signer) find(r *http.Request) (sig signature, v verdict) {
	values := r.Header.Values(signatureHeader)
	if len(values) != 1 {
		return sig, wrongSecret
	}
	parts := strings.Split(values[0], " ")
	if len(parts) != 3 {
		return sig, wrongSecret
	}
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return sig, wrongSecret
	}
	sig = signature{time.Unix(seconds, 0), parts[0], parts[1], parts[2]}
	if s.now().Sub(sig.at).Abs() > maxSkew {
		return sig, wrongClock
	}
	return sig, fits
}

// check returns fits if a node with the same secret has just sent this request to this node. It returns fits
// only once for each signature.
func (s *signer) check(r *http.Request, body []byte) verdict {
	sig, v := s.find(r)
	if v != fits {
		return v
	}
	sum := s.sum(r, r.RequestURI, s.own, sig.time, sig.nonce, body)
	if !hmac.Equal([]byte(sig.sum), []byte(sum)) || !s.use(sig.nonce, sig.at, s.now()) {
		return wrongSecret
	}
	return fits
}

// use stores a nonce, and reports whether it is new. The caller has checked the signature, so strangers
// cannot fill the memory with nonces.
func (s *signer) use(nonce string, at, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) > maxSkew {
		s.swept = now
		for nonce, at := range s.used {
			if now.Sub(at) > maxSkew {
				delete(s.used, nonce)
			}
		}
	}
	_, found := s.used[nonce]
	s.used[nonce] = at
	return !found
}
