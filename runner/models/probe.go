package models

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"
	"time"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// probeLimit bounds each further call of a test, of which a tool and a picture cost a few hundred tokens.
const probeLimit = 30 * time.Second

// asked makes one call of a test and adds its usage, also that of a failed call.
func asked(ctx context.Context, m Priced, t *workers.ProviderTest, used *store.Usage, req model.Request) (
	text string, resp model.Response, err error) {
	cost := Cost{Input: prompt.EstimateRequest(req), Local: model.Local(m.Model)}
	resp, err = model.Ask(ctx, m.Model, req, cost.Count)
	if err != nil {
		resp.Usage = cost.Used(resp.Usage, ctx.Err() != nil)
	}
	t.InputTokens += resp.Usage.InputTokens
	t.OutputTokens += resp.Usage.OutputTokens
	*used = used.Add(m.Usage(resp.Usage))
	for _, part := range resp.Parts {
		if part.Type == model.PartText {
			text += part.Text
		}
	}
	return strings.TrimSpace(text), resp, err
}

// question returns a request of a test.
func question(text string, files ...model.Part) model.Request {
	parts := append([]model.Part{{Type: model.PartText, Text: text}}, files...)
	return model.Request{MaxTokens: testTokens, Messages: []model.Message{{Role: model.RoleUser, Parts: parts}}}
}

// probe tries what a worker needs besides words: a call of a tool, and a picture if the model may see.
func (d *Directory) probe(ctx context.Context, m Priced, t *workers.ProviderTest, used *store.Usage) {
	t.Tools = probeTool(ctx, m, t, used)
	m = d.described(ctx, m)
	if !m.Sees() {
		t.Pictures = &workers.Probe{Why: "the model takes none"}
		return
	}
	t.Pictures = probePicture(ctx, m, t, used)
}

// probeTool asks the model to call a tiny tool.
func probeTool(ctx context.Context, m Priced, t *workers.ProviderTest, used *store.Usage) *workers.Probe {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	const name = "report_number"
	req := question("Call the tool report_number once with the number 7. Write no text.")
	req.Tools = []model.Tool{{Name: name, Description: "Reports a number to the user.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}`)}}
	text, resp, err := asked(ctx, m, t, used, req)
	switch {
	case untried(resp, err):
		return nil
	case err != nil:
		return &workers.Probe{Why: probeFailure(err)}
	}
	for _, part := range resp.Parts {
		if part.Type == model.PartToolCall && part.ToolName == name {
			return &workers.Probe{Has: true}
		}
	}
	return &workers.Probe{Why: "asked to call a tool, the model wrote: " + cmp.Or(db.FirstRunes(text, 200), "nothing")}
}

// probePicture shows the model a picture that is red all over.
func probePicture(ctx context.Context, m Priced, t *workers.ProviderTest, used *store.Usage) *workers.Probe {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	const side = 64 // some models refuse smaller ones
	red := image.NewRGBA(image.Rect(0, 0, side, side))
	draw.Draw(red, red.Bounds(), image.NewUniform(color.RGBA{R: 230, A: 255}), image.Point{}, draw.Src)
	var data bytes.Buffer
	if err := png.Encode(&data, red); err != nil {
		return &workers.Probe{Why: err.Error()}
	}
	file := model.Part{Type: model.PartFile, Path: "colour.png", MediaType: "image/png", Size: int64(data.Len()),
		Open: func() ([]byte, error) { return data.Bytes(), nil }}
	req := question("Which colour fills this picture? Answer with one English word.", file)
	text, resp, err := asked(ctx, m, t, used, req)
	switch {
	case untried(resp, err):
		return nil
	case err != nil:
		return &workers.Probe{Why: probeFailure(err)}
	case !m.Sees():
		return &workers.Probe{Why: "the server refuses pictures"}
	case strings.Contains(strings.ToLower(text), "red"):
		return &workers.Probe{Has: true}
	}
	return &workers.Probe{Why: "shown a red picture, the model wrote: " + cmp.Or(db.FirstRunes(text, 200), "nothing")}
}

// untried reports whether a call says nothing about the model's abilities: it was cut at the limit of its tokens,
// or did not end, or the provider was busy.
func untried(resp model.Response, err error) bool {
	if me, ok := errors.AsType[*model.Error](err); ok {
		return me.Retryable
	}
	return err != nil || resp.Finish == model.FinishLength
}

// probeFailure returns the reason of a failed call for people.
func probeFailure(err error) string {
	if me, ok := errors.AsType[*model.Error](err); ok {
		return me.Message
	}
	return err.Error()
}
