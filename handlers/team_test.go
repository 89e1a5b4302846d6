package handlers_test

import "testing"

// TestTeamInRunView checks the run views of a worker that another worker has run.
func TestTeamInRunView(t *testing.T) {
	is, s := onServer(t)
	below := s.run(t, fields{"input": scripted("say made")})
	r := s.run(t, fields{"taskId": "team", "input": scripted(
		calling("run_worker", "worker", below.text("id"), "input", "hello"), "usage 10 10", "say done")})
	is.Equal(r.at("metadata.children.0.workerId"), below.text("id"))
	is.Equal(r.at("metadata.children.0.status"), "completed")
	is.Equal(r.at("costs.toolCostUsd"), 0.0) // only the worker is charged, not also the call
	again := s.must(t, "GET", "/api/workers/"+below.text("id"), "")
	is.Equal(again.at("metadata.startedBy.taskId"), "team")
}
