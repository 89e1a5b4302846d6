package doctor

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"journeyman/handlers/command"
	"journeyman/runner"
	"journeyman/runner/sandbox"
)

// confinement returns a sentence about the confinement of shell commands.
func (x *examination) confinement() string {
	verdict, possible := "possible: workers get the shell tool", x.found().Possible
	switch {
	case !possible && x.UnsafeShell:
		verdict = "NOT POSSIBLE, but --unsafe-shell: workers get the shell tool, with all rights of this user"
	case !possible:
		verdict = "not possible: workers get no shell tool (--unsafe-shell gives them one, unconfined)"
	}
	return "Confinement of shell commands: " + verdict
}

// checkShell reports how commands of workers are confined, and the limits that apply to
// them. A missing layer is no failure: the others hold, or there is no shell.
func (x *examination) checkShell(context.Context) (list []check) {
	for _, l := range x.found().Layers {
		c := check{l.Name, statusOK, l.Detail, ""}
		if !l.Active {
			c.Status = statusWarning
		}
		list = append(list, c)
	}
	// Unsafe, because the Shell runs nothing: it only describes its limits.
	shell, err := sandbox.NewShell(x.found(), sandbox.ShellConfig{Unsafe: true})
	if err != nil {
		return append(list, check{"shell", statusFailed, err.Error(), ""})
	}
	if shell.Confined() {
		for _, b := range shell.Bounds() { // a service may be in another control group than this process
			list = append(list, check{b.What, statusOK, b.By, ""})
		}
	}
	return list
}

// checkModel asks the configured model a short question, and reports its context window.
func (x *examination) checkModel(ctx context.Context) (list []check) {
	chain, err := x.OpenModels()
	if err != nil {
		return []check{{"model", statusFailed, err.Error(), "correct --model or the key of its provider"}}
	}
	prices, err := x.LoadPrices()
	if err != nil {
		return []check{{"prices", statusFailed, err.Error(), "correct the file of --prices, or --default-price"}}
	}
	// The tools count: their descriptions take a part of the context window.
	tools, shell, err := x.OpenTools(sandbox.NewFilterPool(), x.found)
	if err != nil {
		return []check{{"search", statusFailed, err.Error(), "correct --search-url or --search-key"}}
	}
	for _, f := range runner.Diagnose(ctx, runner.Config{Model: chain[0], Fallbacks: chain[1:],
		Prices: prices, Tools: tools, Shell: shell, ContextWindow: x.Window, Log: x.Log}) {
		c := check{f.About, statusOK, f.Detail, ""}
		switch {
		case f.Bad && f.About == "answers":
			c.Status, c.Advice = statusFailed, "check its address, its key and its name, and whether the provider works"
		case f.Bad:
			c.Status = statusWarning // Detail says what to do
		}
		list = append(list, c)
	}
	return list
}

// checkProviders reports the providers that the first organization has connected, and the results
// of their last tests. Only a running server has the keys.
func (x *examination) checkProviders(ctx context.Context) (list []check) {
	reply, err := x.ControlClient().Do(ctx, command.Call{Provider: &command.ProviderCall{}})
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return []check{{"providers", statusSkipped, "no server runs on this data folder", ""}}
	case err != nil:
		return []check{{"providers", statusWarning, err.Error(), "read the log of the server"}}
	}
	for _, one := range reply.Providers {
		c := check{one.Name, statusOK, command.TestResult(one), ""}
		if one.Test != nil && !one.Test.OK() {
			c.Status, c.Advice = statusFailed, "test or correct it on the page Settings, Models"
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return []check{{"providers", statusSkipped,
			`none; Settings, Models on the dashboard or "journeyman provider add" connects one`, ""}}
	}
	return list
}

// checkServers reports the MCP servers that ask for a sign-in. It does not open the data
// folder, so it cannot know whether somebody has signed in.
func (x *examination) checkServers(ctx context.Context) []check {
	pool, err := x.OpenMCP(nil, "", "")
	if err != nil {
		return []check{{"configuration", statusFailed, err.Error(),
			"correct the file of --mcp, or mcp.json in the data folder"}}
	}
	defer pool.Stop()
	if len(pool.Names()) == 0 {
		return []check{{"servers", statusSkipped, "none are configured", ""}}
	}
	if names := pool.AskSignIn(ctx); len(names) > 0 {
		return []check{{"sign-in", statusWarning, "MCP servers that ask for a sign-in: " + strings.Join(names, ", "),
			"an Owner signs in on the page System of the dashboard, which also shows the state"}}
	}
	return []check{{"servers", statusOK, strings.Join(pool.Names(), ", "), ""}}
}
