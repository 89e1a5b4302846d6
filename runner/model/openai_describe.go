package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The owners of models in the lists of servers that state the context window elsewhere.
const (
	ofLlamaCPP = "llamacpp"
	ofLMStudio = "organization_owner"
)

// Describe asks the server for the context window of the model. Most lists of models contain it. llama.cpp and LM
// Studio state it on pages of their own. The error is errors.ErrUnsupported if the server states none.
func (s *openAIServer) Describe(ctx context.Context) (Capabilities, error) {
	unknown := fmt.Errorf("%s: %w", s.name, errors.ErrUnsupported)
	if isHost(s.base, "openai.com") { // its list has no sizes
		return Capabilities{}, unknown
	}
	raw, err := s.fetchList(ctx)
	if err != nil {
		return Capabilities{}, err
	}
	entry, found := findListed(raw, s.model)
	if !found {
		return Capabilities{}, unknown
	}
	l := entry.listed()
	switch {
	case l.ContextWindow > 0:
	case entry.OwnedBy == ofLlamaCPP:
		l.ContextWindow = s.llamaWindow(ctx)
	case entry.OwnedBy == ofLMStudio:
		l.ContextWindow = s.studioWindow(ctx)
	}
	if l.ContextWindow == 0 {
		return Capabilities{}, unknown
	}
	// A list that does not name the kinds of input leaves open whether the model sees pictures.
	can := Capabilities{ContextWindow: l.ContextWindow, LimitsOnly: l.Abilities == nil || len(entry.inputs()) == 0}
	can.Tools = slices.Contains(l.Abilities, AbilityTools)
	can.Vision = slices.Contains(l.Abilities, AbilityImages)
	can.Thinking = slices.Contains(l.Abilities, AbilityReasoning)
	return can, nil
}

// fetchList returns the list of models, nil if the server has none.
func (s *openAIServer) fetchList(ctx context.Context) ([]byte, error) {
	raw, refused, err := s.fetch(ctx, "models")
	if refused.isNotFound() && s.base.Path == "" {
		raw, _, err = s.fetch(ctx, endpoint("models", true))
	}
	return raw, err
}

// findListed returns the entry of a model in a list. A server with one model serves it under any name.
func findListed(raw []byte, name string) (listedModel, bool) {
	all, err := listedModels(raw)
	if err != nil {
		return listedModel{}, false
	}
	i := slices.IndexFunc(all, func(m listedModel) bool {
		id := string(m.ID)
		return id == name || strings.TrimPrefix(id, "models/") == name
	})
	if i < 0 && len(all) == 1 {
		i = 0
	}
	if i < 0 {
		return listedModel{}, false
	}
	return all[i], true
}

// page reads a JSON document of the server outside of OpenAI's API. It reports whether that exists.
func (s *openAIServer) page(ctx context.Context, path string, into any) bool {
	root := *s.base
	root.Path = strings.TrimSuffix(root.Path, "/v1")
	at := s.remote
	at.base = &root
	raw, refused, err := at.fetch(ctx, path)
	return err == nil && refused == nil && json.Unmarshal(raw, into) == nil
}

// llamaWindow returns the context window of a llama.cpp server, of which each slot has its share. It is 0 if unknown.
func (s *openAIServer) llamaWindow(ctx context.Context) int64 {
	var props struct {
		Settings struct {
			Window looseNumber `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if !s.page(ctx, "props", &props) {
		return 0
	}
	return props.Settings.Window.tokens()
}

// studioWindow returns the context window with which LM Studio has loaded the model, 0 if unknown.
func (s *openAIServer) studioWindow(ctx context.Context) int64 {
	var list json.RawMessage
	if !s.page(ctx, "api/v0/models", &list) {
		return 0
	}
	entry, found := findListed(list, s.model)
	if !found {
		return 0
	}
	return entry.Loaded.tokens() // the longest possible context says nothing about the loaded one
}
