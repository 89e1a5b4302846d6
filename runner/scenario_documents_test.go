package runner_test

import (
	"bytes"
	"image"
	"image/png"

	"journeyman/runner/tool"
)

// document stands for the bytes of a docx or xlsx file, which are unknown in the script.
const document = "a document of an office program"

// photo returns a PNG image.
func photo() string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		panic(err) // writes to memory do not fail
	}
	return b.String()
}

// documentScenarios returns tasks with documents, images, the web and people.
func documentScenarios() []scenario {
	return []scenario{
		{
			name:   "spreadsheet of totals",
			files:  map[string]string{"sales.csv": "region,amount\nNorth,120\nSouth,80\n"},
			inputs: []string{"Make a spreadsheet with the total."},
			says: []reply{
				does(read("sales.csv")),
				does(write("totals.xlsx", `[["region","amount"],["North",120],["South",80],["Total",{"formula":"SUM(B2:B3)"}]]`)),
				does(read("totals.xlsx"), publish("totals.xlsx")),
				say("The total is 200.").after("North", "Total"),
			},
			published: map[string]string{"totals.xlsx": document}, output: "The total is 200.",
		},
		{
			name:   "a letter as a document",
			inputs: []string{"Write a letter to Ms. Vogel: the room is booked."},
			says: []reply{
				does(write("letter.docx", "# Your booking\n\nDear Ms. Vogel, the room is booked.\n")),
				does(read("letter.docx")),
				does(publish("letter.docx")).after("the room is booked"),
				say("The letter is ready."),
			},
			published: map[string]string{"letter.docx": document}, output: "The letter is ready.",
		},
		{
			name:   "description of an image",
			files:  map[string]string{"photo.png": photo()},
			inputs: []string{"Describe the photo."},
			says: []reply{
				does(use("view_image", "path", "photo.png")),
				say("A black square.").after("The picture photo.png: PNG, ").seeing(2),
			},
			output: "A black square.",
		},
		{
			name:   "an image that is none",
			files:  map[string]string{"photo.txt": "no image\n"},
			inputs: []string{"Look at photo.txt."},
			says:   []reply{does(use("view_image", "path", "photo.txt").failing("no picture")), say("It is a text.")},
			output: "It is a text.",
		},
		{
			name: "prices of the web in a table", pages: map[string]string{"/prices.json": `{"bread":2,"milk":1.2}`},
			inputs: []string{"Make a CSV file of the prices at {site}/prices.json."},
			says: []reply{
				does(fetch("/prices.json")),
				does(write("prices.csv", "item,price\nbread,2\nmilk,1.2\n"), publish("prices.csv")).after(`milk`),
				say("Two prices: see prices.csv."),
			},
			published: map[string]string{"prices.csv": "item,price\nbread,2\nmilk,1.2\n"}, output: "Two prices: see prices.csv.",
		},
		{
			name: "two questions at once", people: []verdict{{answer: "Ann"}, {answer: "noon"}},
			inputs: []string{"Book a table."},
			says: []reply{
				does(use(tool.AskUser, "question", "In whose name?"), use(tool.AskUser, "question", "At what time?")),
				does(write("booking.txt", "Ann, noon\n"), publish("booking.txt")).after("Ann", "noon"),
				say("The table is booked for Ann at noon."),
			},
			published: map[string]string{"booking.txt": "Ann, noon\n"}, output: "The table is booked for Ann at noon.",
		},
		{
			name:   "a file that is not there",
			inputs: []string{"Publish the report."},
			says: []reply{
				does(publish("report.md").failing("report.md")),
				does(use("list_files")),
				say("There is no report. Shall I write one?"),
			},
			output: "There is no report. Shall I write one?",
		},
		{
			name:   "a translator is asked",
			inputs: []string{"Have the greeting translated."},
			says: []reply{
				does(use(tool.RunWorkerName, "worker", "Translator", "input", "Translate: Guten Tag")),
				does(write("greeting.txt", "Good day\n"), publish("greeting.txt")).after("Good day"),
				say("It says: Good day."),
			},
			cast:      map[string][]reply{"Translator": {does(write("work.txt", "Good day\n")), say("In English: Good day").after("Translate: Guten Tag")}},
			published: map[string]string{"greeting.txt": "Good day\n"}, output: "It says: Good day.",
		},
		{
			name:   "files of one kind",
			files:  map[string]string{"a.csv": "1\n", "b.csv": "2\n", "c.txt": "3\n"},
			inputs: []string{"Which tables are there?"},
			says: []reply{
				does(use("list_files", "glob", "*.csv")),
				say("a.csv and b.csv.").after("a.csv", "b.csv"),
			},
			output: "a.csv and b.csv.",
		},
	}
}
