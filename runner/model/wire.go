package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// argumentsObject returns the arguments of a tool call as a JSON object, because providers
// accept nothing else. Invalid arguments become a field of that object. The name of the field
// tells the model that they are invalid.
func argumentsObject(input json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(input, &object) == nil && object != nil {
		return input
	}
	text := string(input)
	_ = json.Unmarshal(input, &text) // text is unchanged unless the input is a JSON string
	wrapped, err := json.Marshal(map[string]string{"invalid_arguments": text})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return wrapped
}

// usedCallIDs returns the call ids of a conversation.
func usedCallIDs(req *Request) map[string]bool {
	used := map[string]bool{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if p.Type == PartToolCall {
				used[p.CallID] = true
			}
		}
	}
	return used
}

// freshCallID returns the provider's id if it is new in the conversation, else a generated one.
// Some servers require ids of nine letters and digits.
func freshCallID(chosen string, used map[string]bool) string {
	id := chosen
	for n := len(used); id == "" || used[id]; n++ {
		id = fmt.Sprintf("call%05d", n)
	}
	used[id] = true
	return id
}

// safeName returns an id or a name that providers accept: at most limit letters, digits, - and
// _. Equal words give equal results.
func safeName(word string, limit int) string {
	if len(word) <= limit && plainPattern.MatchString(word) {
		return word
	}
	sum := sha256.Sum256([]byte(word))
	kept := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, word)
	// The hash distinguishes different words.
	return kept[:min(len(kept), limit-9)] + "_" + hex.EncodeToString(sum[:4])
}

var plainPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// schemaInstruction returns the instruction to answer according to a schema.
func schemaInstruction(schema json.RawMessage) string {
	return "Your final answer must be one JSON value that meets the following JSON Schema, " +
		"with nothing before or after it:\n" + string(schema)
}

// system returns the system prompt: preamble, instructions and further texts.
func system(req *Request, more ...string) string {
	var parts []string
	for _, s := range append([]string{req.Preamble, req.Instructions}, more...) {
		if strings.TrimSpace(s) != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n\n")
}

// providerMeta is the Meta of a part. It is only sent back to the model with the same name.
type providerMeta struct {
	Model string          `json:"model"` // name of the model that produced the part
	Data  json.RawMessage `json:"data"`
}

// sealMeta returns the Meta of a part.
func sealMeta(name string, data any) json.RawMessage {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	sealed, _ := json.Marshal(providerMeta{name, raw}) // marshaling strings and valid JSON never fails
	return sealed
}

// openMeta parses a part's Meta into data. It returns false if another model produced the part,
// because providers reject signatures of other models.
func openMeta(name string, meta json.RawMessage, data any) bool {
	var sealed providerMeta
	return json.Unmarshal(meta, &sealed) == nil && sealed.Model == name && json.Unmarshal(sealed.Data, data) == nil
}
