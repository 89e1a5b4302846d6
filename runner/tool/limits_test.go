package tool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
)

// TestDescriptionsStateLimits checks that limits in the descriptions of tools equal the constants.
func TestDescriptionsStateLimits(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"web_search": string(webSearch{}.Spec().InputSchema) + webSearch{}.Spec().Description,
		"web_fetch": webFetch{}.Spec().Description}
	for _, tl := range All(Documents{}) {
		texts[tl.Spec().Name] = tl.Spec().Description + string(tl.Spec().InputSchema)
	}
	for name, limits := range map[string][]string{
		"read_file": {fmt.Sprintf("Up to %d lines", defaultLines), fmt.Sprintf("%d KiB", maxContent>>10),
			fmt.Sprintf("default %d", defaultLines)},
		"web_fetch":  {fmt.Sprintf("Up to %d KiB", maxContent>>10)},
		"web_search": {fmt.Sprintf("up to %d results", maxResults), fmt.Sprintf(`"maxLength": %d`, maxQuery)},
		"list_files": {fmt.Sprintf("Up to %d.", maxListed), fmt.Sprintf(`"maxLength": %d`, maxGlob)},
		"search_files": {fmt.Sprintf("up to %d matches", maxMatches), fmt.Sprintf(`"maxLength": %d`, maxPattern),
			fmt.Sprintf(`"maximum": %d`, maxContext)},
		"edit_file":    {fmt.Sprintf(`"maxItems": %d`, maxEdits)},
		"publish_file": {fmt.Sprintf(`"maxLength": %d`, maxTitle)},
		"update_plan":  {fmt.Sprintf(`"maxItems": %d`, maxPlanItems), fmt.Sprintf(`"maxLength": %d`, maxPlanText)},
		"ask_user": {fmt.Sprintf("at most %d characters", maxQuestion), fmt.Sprintf(`"maxItems": %d`, maxChoices),
			fmt.Sprintf(`"maxLength": %d`, maxChoice), fmt.Sprintf("Up to %d calls", MaxQuestions)},
		"run_worker": {fmt.Sprintf(`"maxLength": %d`, maxWorkerName), fmt.Sprintf(`"maxItems": %d`, maxErrandFiles)},
	} {
		for _, limit := range limits {
			if !strings.Contains(strings.Join(strings.Fields(texts[name]), " "), limit) {
				t.Errorf("%s does not say %q", name, limit)
			}
		}
	}
}

// TestErrorsNameTheArgument checks errors of the shell and of an ambiguous edit: the argument, and the way out.
func TestErrorsNameTheArgument(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	_, err := Shell(&sandbox.Shell{}).Run(t.Context(), h, []byte(`{"command": " "}`))
	is.True(err != nil && strings.HasPrefix(err.Error(), "command: ")) // the shell has no argument path
	h.put(t, "a.txt", "x \ny\nx  \ny\n")
	_, err = h.call(t, "edit_file", object{"path": "a.txt", "old": "x\ny", "new": "z"})
	is.True(err != nil && strings.Contains(err.Error(), "give more of the text around the right one"))
}
