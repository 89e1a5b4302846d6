package runner

import (
	"context"
	"encoding/json"
	"io"

	"journeyman/runner/model"
	"journeyman/store"
)

// history reads the conversation that a turn continues, its own instruction last,
// and gives the files attached to that.
func (r *Runner) history(ctx context.Context, w *work) ([]store.File, error) {
	c := w.claim
	w.talk = &conversation{turn: c.Seq}
	if c.Seq > 0 {
		conv, err := r.cfg.Store.Conversation(ctx, c.TaskNum)
		if err != nil {
			return nil, err
		}
		for _, t := range conv.Turns {
			if t.Seq < c.Seq {
				w.talk.add(t.Seq, -1, r.instruction(t, turnFiles(conv.Files, t.Num, store.Attached)))
				w.addEarlier(t, conv.Steps[t.Num])
			}
		}
	}
	files, err := r.cfg.Store.FilesByTurn(ctx, c.Num)
	if err != nil {
		return nil, err
	}
	attached := turnFiles(files, c.Num, store.Attached)
	w.talk.add(c.Seq, -1, r.instruction(c.Turn, attached))
	return attached, nil
}

// addEarlier adds what the worker did in a turn that has ended. It ends with a
// message of the assistant, as models expect before the next instruction.
func (w *work) addEarlier(t store.Turn, steps []store.Step) {
	last := model.RoleUser
	for _, st := range steps {
		w.learn(st)
		if messages := stepMessages([]store.Step{st}); len(messages) > 0 {
			w.talk.add(t.Seq, st.Seq, messages...)
			last = messages[len(messages)-1].Role
		}
	}
	if last == model.RoleAssistant {
		return
	}
	note := "(no answer)"
	if t.Failure != nil {
		note = "(no answer: " + t.Failure.Message + ")"
	}
	w.talk.add(t.Seq, int64(len(steps)), model.Message{Role: model.RoleAssistant, Parts: []model.Part{{Type: model.PartText, Text: note}}})
}

// instruction is a user's message: the input and the files attached to it.
func (r *Runner) instruction(t store.Turn, attached []store.File) model.Message {
	m := model.Message{Role: model.RoleUser, Parts: []model.Part{{Type: model.PartText, Text: t.Input}}}
	for _, f := range attached {
		m.Parts = append(m.Parts, model.Part{Type: model.PartFile, Path: f.Path, MediaType: f.MediaType, Size: f.Size,
			Open: func() ([]byte, error) { return r.blob(f.SHA256) }})
	}
	return m
}

func (r *Runner) blob(sha string) (b []byte, err error) {
	f, err := r.cfg.Store.OpenBlob(sha)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// stepMessages is a journal as the model said and heard it.
func stepMessages(steps []store.Step) []model.Message {
	var messages []model.Message
	for _, st := range steps {
		said := model.Message{Role: model.RoleAssistant}
		heard := model.Message{Role: model.RoleTool}
		for _, p := range st.Parts {
			if !isCall(p) && p.Text == "" && p.Meta == nil {
				continue // nothing to say
			}
			said.Parts = append(said.Parts, model.Part{Type: model.PartType(p.Type), Text: p.Text, CallID: p.CallID,
				ToolName: p.ToolName, Input: p.Input, Meta: p.Meta})
			if isCall(p) {
				heard.Parts = append(heard.Parts, toolResult(st, p, len(heard.Parts)))
			}
		}
		if len(said.Parts) > 0 {
			messages = append(messages, said)
		}
		if len(heard.Parts) > 0 {
			messages = append(messages, heard)
		}
		if st.Feedback != "" {
			messages = append(messages, model.Message{Role: model.RoleUser, Parts: []model.Part{{Type: model.PartText, Text: st.Feedback}}})
		}
	}
	return messages
}

// toolResult is what the model hears of the n-th tool call of a step.
func toolResult(st store.Step, p store.Part, n int) model.Part {
	res := model.Part{Type: model.PartToolResult, CallID: p.CallID, ToolName: p.ToolName}
	c, ended := st.Call(int64(n))
	if !ended {
		res.Text, res.IsError = callDidNotRun, true
		return res
	}
	res.Text, res.IsError = string(c.Output), c.State != store.CallCompleted
	if res.IsError {
		res.Text = errorText(c)
	}
	return res
}

// errorText is the message of a call that failed.
func errorText(c store.Call) string {
	var text string
	if err := json.Unmarshal(c.Output, &text); err != nil || text == "" {
		return "the call failed"
	}
	return text
}

// turnFiles picks the files of a turn and an origin, the newest of each path, in
// the order in which the paths first came.
func turnFiles(files []store.File, turnNum int64, origin string) []store.File {
	var own []store.File
	for _, f := range files {
		if f.Origin == origin && (turnNum == 0 || f.TurnNum == turnNum) {
			own = append(own, f)
		}
	}
	return newestByPath(own)
}

// PublishedFiles picks what a task's turns published, the newest of each path.
func PublishedFiles(files []store.File) []store.File { return turnFiles(files, 0, store.Published) }

// TurnFiles picks what a turn published, the newest of each path.
func TurnFiles(files []store.File, turnNum int64) []store.File {
	return turnFiles(files, turnNum, store.Published)
}

func newestByPath(files []store.File) []store.File {
	at := map[string]int{}
	var list []store.File
	for _, f := range files {
		if i, ok := at[f.Path]; ok {
			list[i] = f
			continue
		}
		at[f.Path] = len(list)
		list = append(list, f)
	}
	return list
}
