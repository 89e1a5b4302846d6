package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// An Answer is what a node at an address says to a program that is no node.
type Answer struct {
	Misfit string    // why the node refuses a message that is signed with the secret, as a sentence; "" if it accepts it
	Clock  time.Time // of the machine of the node, in whole seconds; zero if the answer does not show it
}

// Ask sends the node at an address a message without changes, signed with secret. The message changes nothing. If
// secret is empty, the answer only shows that the address leads to a node. An error means that there is no answer.
func Ask(ctx context.Context, secret, address string) (a Answer, err error) {
	const none = "{}"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+changesPath, strings.NewReader(none))
	if err != nil {
		return a, errors.New("the address is no URL")
	}
	req.Header.Set("Content-Type", "application/json")
	if secret != "" {
		newSigner(secret, "", time.Now).sign(req, address, []byte(none))
	}
	client := newClient()
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return a, e.Err
	} else if err != nil {
		return a, err
	}
	_ = resp.Body.Close()
	a.Clock, _ = http.ParseTime(resp.Header.Get("Date")) // a proxy may have removed it
	misfit, known := misfitOf(resp)
	switch {
	case !known:
		return a, fmt.Errorf("it answers with status %d", resp.StatusCode)
	case secret == "" && misfit != wrongAddress: // the node refuses the missing signature
	default:
		a.Misfit = misfit.reason()
	}
	return a, nil
}
