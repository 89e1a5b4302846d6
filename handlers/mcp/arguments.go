package mcp

import (
	"bytes"
	"encoding/json"
	"time"

	"journeyman/handlers"
	"journeyman/store"
	"journeyman/store/db"
)

// forever is a wait without a time limit.
const forever = time.Duration(1<<63 - 1)

// maxWait is the longest wait that a call may ask for, in seconds.
const maxWait = 24 * 3600

// readArguments decodes a call's arguments. It uses the reader of API requests, so that its errors
// name each invalid argument.
func readArguments(raw json.RawMessage) (*handlers.Body, error) {
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" {
		raw = json.RawMessage(`{}`) // the protocol lets a client leave them out, and some send null
	}
	args, err := handlers.ParseBody(raw)
	if err != nil {
		return nil, db.Errorf(db.Invalid, "the arguments must be a JSON object")
	}
	return args, nil
}

// wait returns how long a call waits for a turn, or fallback if the call does not set it.
func (c *call) wait(fallback time.Duration) time.Duration {
	n, sent := c.args.Integer("waitSeconds", 0, maxWait)
	if !sent {
		return fallback
	}
	return time.Duration(n) * time.Second
}

// turn returns the turn that the call asks for.
func (c *call) turn() store.NewTurn {
	t := store.NewTurn{Caller: c.who.Caller, Channel: store.ChannelMCP, WorkerID: c.worker, TaskID: c.args.Text("task"),
		Input: c.args.Instruction(), Budget: c.args.Budget()}
	if c.worker == "" { // otherwise the tool's name contains the worker
		t.WorkerID = c.args.Text("worker")
		c.args.Invalid.Check(t.WorkerID != "", "worker", "is required")
	}
	c.args.Invalid.Check(t.TaskID == "" || db.ValidTaskID(t.TaskID), "task", db.TaskIDRule)
	return t
}
