package runner_test

import "journeyman/runner/tool"

// invoiceSchema is the output schema for invoices.
const invoiceSchema = `{"type":"object","properties":{"number":{"type":"string"},"total":{"type":"number"},"due":{"type":"string"}},` +
	`"required":["number","total"],"additionalProperties":false}`

// officeScenarios returns tasks with text, mail and tables.
func officeScenarios() []scenario {
	const notes = "Ann: we ship on Friday.\nBob: I call the printer.\nAnn: Cleo books the room.\n"
	const actions = "# Actions\n\n- Bob: call the printer\n- Cleo: book the room\n"
	return []scenario{
		{
			name: "invoice to JSON", schema: invoiceSchema,
			files:  map[string]string{"invoice.txt": "Invoice 2026-117\nTotal: 1.250,50 EUR\nPayable by 30 April 2026\n"},
			inputs: []string{"Extract number, total and due date of the invoice."},
			says: []reply{
				does(read("invoice.txt")).thinking("First the file."),
				say(`{"number":"2026-117","total":1250.5,"due":"2026-04-30"}`).after("1\tInvoice 2026-117"),
			},
			output:     `{"number":"2026-117","total":1250.5,"due":"2026-04-30"}`,
			structured: `{"number":"2026-117","total":1250.5,"due":"2026-04-30"}`,
		},
		{
			name: "invoice, corrected by the schema", schema: invoiceSchema,
			inputs: []string{"Invoice A-1 over 99 euros. Extract it."},
			says: []reply{
				say(`{"number":"A-1","total":"99 euros"}`),
				say(`{"number":"A-1","total":99}`).after("does not fit the output schema"),
			},
			output: `{"number":"A-1","total":99}`, structured: `{"number":"A-1","total":99}`,
		},
		{
			name: "invoice, never right", schema: invoiceSchema, end: "failed: schema_mismatch",
			inputs: []string{"Extract this: nothing."},
			says:   []reply{say(`{"n":1}`), say(`{"n":2}`), say(`{"n":3}`), say(`{"n":4}`)},
			output: `{"n":4}`,
		},
		{
			name:   "meeting notes to actions",
			files:  map[string]string{"notes.txt": notes},
			inputs: []string{"Make a list of actions from the notes."},
			says: []reply{
				does(read("notes.txt")),
				does(write("actions.md", actions)).after("2\tBob: I call the printer."),
				does(publish("actions.md")),
				say("Two actions: see actions.md."),
			},
			published: map[string]string{"actions.md": actions}, output: "Two actions: see actions.md.",
		},
		{
			name:   "CSV cleaning",
			files:  map[string]string{"people.csv": "name, mail\n Ann ,ANN@A.TEST\nBob,bob@b.test\nAnn,ann@a.test\n"},
			inputs: []string{"Clean the table: no duplicates, no spaces, mail in lower case."},
			says: []reply{
				does(read("people.csv")),
				does(bash(`awk -F' *, *' 'NR==1{print "name,mail";next}{gsub(/^ +| +$/,"",$1);k=$1","tolower($2);if(!s[k]++)print k}' people.csv > clean.csv`)),
				does(read("clean.csv"), publish("clean.csv")),
				say("Two people are left.").after("3\tBob,bob@b.test"),
			},
			published: map[string]string{"clean.csv": "name,mail\nAnn,ann@a.test\nBob,bob@b.test\n"}, output: "Two people are left.",
		},
		{
			name:   "comparing two contracts",
			files:  map[string]string{"old.txt": "Term: 12 months\nNotice: 3 months\nFee: 100\n", "new.txt": "Term: 24 months\nNotice: 3 months\nFee: 90\n"},
			inputs: []string{"What has changed between old.txt and new.txt?"},
			says: []reply{
				does(read("old.txt"), read("new.txt")).and("I read both at once."),
				say("The term rises from 12 to 24 months, and the fee falls from 100 to 90.").after("Term: 12 months", "Term: 24 months"),
			},
			output: "The term rises from 12 to 24 months, and the fee falls from 100 to 90.",
		},
		{
			name:   "research with sources",
			pages:  map[string]string{"/harbour": "The harbour opens on 4 May.", "/ships.csv": "year,ships\n2024,17\n2025,21\n"},
			inputs: []string{"When does the harbour open, and how many ships came in 2025?"},
			says: []reply{
				does(fetch("/harbour"), fetch("/ships.csv")),
				say("It opens on 4 May [1]. 21 ships came in 2025 [2].").after("opens on 4 May", "2025,21"),
			},
			output: "It opens on 4 May [1]. 21 ships came in 2025 [2].",
		},
		{
			name: "a page that is missing", pages: map[string]string{"/b": "It is 7."},
			inputs: []string{"Look it up at {site}/a or {site}/b."},
			says: []reply{
				does(fetch("/a").failing("404")),
				does(fetch("/b")),
				say("It is 7, as /b says.").after("It is 7."),
			},
			output: "It is 7, as /b says.",
		},
		{
			name: "a page in HTML", pages: map[string]string{"/news": "<!doctype html><title>News</title><article><h1>Prices fall</h1><p>Bread costs two euros from now on, " +
				"which is a little less than it was before, the bakers of the town have said.</p></article>"},
			inputs: []string{"What does bread cost?"},
			says:   []reply{does(fetch("/news")), say("Two euros.").after("Bread costs two euros")},
			output: "Two euros.",
		},
		{
			name:   "weekly report",
			files:  map[string]string{"mon.txt": "3 orders\n", "tue.txt": "5 orders\n", "wed.txt": "no orders\n"},
			inputs: []string{"Write the weekly report."},
			says: []reply{
				does(use("update_plan", "items", []any{map[string]any{"text": "Read the days", "state": "in_progress"}, map[string]any{"text": "Write the report"}})),
				does(use("list_files")),
				does(read("mon.txt"), read("tue.txt"), read("wed.txt")).after("tue.txt"),
				does(write("report.md", "Orders this week: 8\n"), publish("report.md")).after("5 orders"),
				does(use("update_plan", "items", []any{map[string]any{"text": "Read the days", "state": "done"}, map[string]any{"text": "Write the report", "state": "done"}})),
				say("Eight orders this week."),
			},
			published: map[string]string{"report.md": "Orders this week: 8\n"}, output: "Eight orders this week.",
		},
		{
			name: "mail triage with approval", asks: []string{"write_file"}, people: []verdict{{}, {deny: "he has left the firm"}},
			files:  map[string]string{"inbox.txt": "1 from Ann: please cancel my order\n2 from Bob: invoice?\n"},
			inputs: []string{"Draft answers to the mails."},
			says: []reply{
				does(read("inbox.txt")),
				does(write("answer-1.txt", "Dear Ann, it is cancelled.\n"), write("answer-2.txt", "Dear Bob, here it is.\n").failing("he has left the firm")),
				does(publish("answer-1.txt")).after("a person has denied this call"),
				say("One answer is ready; the other one was not wanted."),
			},
			published: map[string]string{"answer-1.txt": "Dear Ann, it is cancelled.\n"}, output: "One answer is ready; the other one was not wanted.",
		},
		{
			name: "asking a missing date", people: []verdict{{answer: "12 May"}},
			inputs: []string{"Write the invitation."},
			says: []reply{
				does(use(tool.AskUser, "question", "On which day?", "choices", []string{"11 May", "12 May"})),
				does(write("invitation.txt", "We meet on 12 May.\n"), publish("invitation.txt")).after(`12 May`),
				say("Done: it says 12 May."),
			},
			published: map[string]string{"invitation.txt": "We meet on 12 May.\n"}, output: "Done: it says 12 May.",
		},
		{
			name:   "long output",
			inputs: []string{"Tell a long story."},
			says:   []reply{say("Once upon a time there was a clerk who wrote, and wrote — très bien — until the evening came, and the lamp went out. The end.")},
			output: "Once upon a time there was a clerk who wrote, and wrote — très bien — until the evening came, and the lamp went out. The end.",
		},
		{
			name:   "two questions in a row",
			files:  map[string]string{"rates.txt": "Room: 80\nBreakfast: 12\n"},
			inputs: []string{"What is the room?", "And with breakfast?"},
			says: []reply{
				does(read("rates.txt")),
				say("The room is 80.").after("Room: 80"),
				say("With breakfast it is 92.").after("And with breakfast?", "The room is 80.", "Breakfast: 12"),
			},
			output: "With breakfast it is 92.",
		},
		{
			name:   "an answer that is forgotten",
			inputs: []string{"Say hello."},
			says:   []reply{say(""), say("Hello.").after("You ended without an answer")},
			output: "Hello.",
		},
		{
			name: "a version published again", inputs: []string{"Write a slogan.", "Shorter."},
			says: []reply{
				does(write("slogan.txt", "We clean everything, everywhere.\n"), publish("slogan.txt")),
				say("Here is a slogan."),
				does(edit("slogan.txt", "everything, everywhere", "all")).after("Shorter."),
				does(publish("slogan.txt")),
				say("Here is a shorter one."),
			},
			published: map[string]string{"slogan.txt": "We clean all.\n"}, output: "Here is a shorter one.",
		},
		{
			name: "a budget of three calls", steps: 3, end: "incomplete: budget_exhausted",
			files:  map[string]string{"a.txt": "A\n", "b.txt": "B\n", "c.txt": "C\n"},
			inputs: []string{"Read all files."},
			says:   []reply{does(read("a.txt")), does(read("b.txt")), does(read("c.txt")), say("I have read three files, and then the budget was at its end.")},
			output: "I have read three files, and then the budget was at its end.",
		},
	}
}
