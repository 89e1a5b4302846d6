package command

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"journeyman/runner/backup"
	"journeyman/store/objects"
)

// Settings holds the flags that all commands share, those that are used most at the top. Every flag is
// also an environment variable. The tag "min" bounds a number from below.
type Settings struct {
	Data        string        `default:"./data" help:"Data folder: database, workspaces, published files."`
	Model       string        `help:"Model: offline, openai:NAME, anthropic:NAME, ollama:NAME or replay:DIR. A list separated by commas is a chain of fallbacks. By default, API keys in the environment select the model." placeholder:"NAME"`
	Config      string        `help:"YAML file that sets flags by name; the command line and the environment override it." placeholder:"FILE"`
	Timezone    string        `default:"UTC" help:"Time zone of cron schedules without their own."`
	MCP         string        `name:"mcp" help:"JSON file that lists MCP servers for the workers; mcp.json in the data folder by default." placeholder:"FILE"`
	SearchURL   string        `help:"Address of a SearXNG instance for the tool web_search." placeholder:"URL"`
	SearchKey   string        `help:"Key of Brave's search API, instead of SearXNG." placeholder:"KEY" secret:"the search key"`
	UnsafeShell bool          `help:"Offer workers a shell even where this machine cannot confine it."`
	Private     bool          `name:"allow-private-network" help:"Let webhooks and web tools reach private and loopback addresses, and let webhooks on this machine use http://."`
	Prices      string        `help:"JSON file with prices of models, in the form of this program or of LiteLLM; it overrides the built-in table." placeholder:"FILE"`
	DefaultCost string        `name:"default-price" help:"Price of models without one, as INPUT,OUTPUT in US$ per million tokens. By default they cost nothing, and caps do not apply to them." placeholder:"INPUT,OUTPUT"`
	Window      int64         `name:"context-window" default:"32768" min:"1024" help:"Context window, in tokens, of models whose window neither the price table nor their server states."`
	Patience    time.Duration `name:"model-patience" default:"0s" min:"0" help:"How long a turn waits for models that are down before it fails; 0s means the time of its budget."`
	Record      string        `help:"Folder for recordings of the model's answers, for --model replay:DIR." placeholder:"DIR"`
	Concurrency int           `default:"64" min:"1" help:"Number of turns that run at once; those of people who are not members get at most a quarter."`
	QueueLimit  int           `default:"10000" min:"1" help:"Number of turns of one organization that may wait; further ones get 503. Those of people who are not members get at most a quarter."`
	QueueTotal  int           `min:"0" help:"Number of turns of all organizations that may wait; ten times --queue-limit by default."`
	Grace       time.Duration `default:"10s" min:"0" help:"Time for running turns to end at a shutdown; the next start continues the others."`
	LogFormat   string        `enum:"auto,text,json" default:"auto" help:"Log format: text, json or auto (text on a terminal)."`
	LogLevel    string        `enum:"debug,info,warn,error" default:"info" help:"Lowest log level: debug, info, warn or error."`
	BeginAnew   bool          `help:"Create an empty database in a data folder that has files but no database, instead of refusing to start."`
	Database    string        `help:"PostgreSQL database, 14 or later: postgres://user:password@host/name. By default the database is a file in the data folder." placeholder:"URL" secret:"the address of the database and its password"`
	Blobs       string        `help:"Place of the files that are attached or published, instead of the data folder: s3://BUCKET/PREFIX. It needs --database." placeholder:"PLACE"`

	NodeFlags
	DiskLimits

	BlobsS3 objects.Access `embed:"" prefix:"blobs-s3-"`
	Storage backup.Storage `embed:"" prefix:"backup-"`

	Budgets struct {
		//lint:ignore SA5008 every set of a tag is read
		Low budget `embed:"" prefix:"low-" set:"credits=10" set:"steps=10" set:"time=5m" set:"name=low"`
		//lint:ignore SA5008 every set of a tag is read
		Standard budget `embed:"" prefix:"standard-" set:"credits=100" set:"steps=50" set:"time=30m" set:"name=standard"`
		//lint:ignore SA5008 every set of a tag is read
		High budget `embed:"" prefix:"high-" set:"credits=1000" set:"steps=250" set:"time=2h" set:"name=high"`
		//lint:ignore SA5008 every set of a tag is read
		Unlimited budget `embed:"" prefix:"unlimited-" set:"credits=0" set:"steps=0" set:"time=24h" set:"name=unlimited"`
	} `embed:"" prefix:"budget-"`
}

// A budget holds the flags of one budget. It has the fields of runner.Limits.
type budget struct {
	Credits float64       `default:"${credits}" min:"0" help:"Credits that a turn of budget ${name} may spend; 0 is no limit."`
	Steps   int64         `default:"${steps}" min:"0" help:"Model calls that a turn of budget ${name} may make; 0 is no limit."`
	Time    time.Duration `default:"${time}" min:"0" help:"Time that a turn of budget ${name} may take."`
}

// checkMinimums returns an error where the value of a flag is below its tag "min".
func checkMinimums(app *kong.Application) error {
	for _, f := range allFlags(app.Node) {
		if err := belowMinimum(f, f.Target); err != nil {
			return fmt.Errorf("--%s: %w", f.Name, err)
		}
	}
	return nil
}

// belowMinimum returns an error if value is below the minimum of a flag.
func belowMinimum(f *kong.Flag, value reflect.Value) error {
	if !f.Tag.Has("min") {
		return nil
	}
	least, err := strconv.ParseInt(f.Tag.Get("min"), 10, 64)
	if err != nil {
		return err
	}
	number := int64(0)
	if value.CanFloat() {
		number = int64(math.Floor(value.Float()))
	} else {
		number = value.Int()
	}
	if number < least {
		return fmt.Errorf("must be at least %d", least)
	}
	return nil
}

// allFlags returns the flags of a command and of all commands below it.
func allFlags(node *kong.Node) []*kong.Flag {
	flags := slices.Clone(node.Flags)
	for _, child := range node.Children {
		flags = append(flags, allFlags(child)...)
	}
	return flags
}
