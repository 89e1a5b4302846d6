package command

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// An Invocation is a parsed command line, with the environment and the configuration file.
type Invocation struct {
	*kong.Context
	Warnings []string // for the log, which exists only when the flags are known
	loaded   bool     // the configuration file has been looked for
}

const (
	configFlag = "config"
	fileSuffix = "-file" // of flags that name the file of a secret
	envPrefix  = "JOURNEYMAN"
)

// Parse reads the command line into the structure that cfg points to. The command line
// overrides the environment, the environment overrides the configuration file, and the file overrides
// the defaults. A secret may be in a file; the file "-" is stdin. If stdin is nil, Parse
// reads no such file: some, such as a FIFO, can be read only once.
func Parse(cfg any, args []string, stdin io.Reader, options ...kong.Option) (*Invocation, error) {
	inv := &Invocation{}
	// The secret's flags come first, so that they get environment variables.
	options = slices.Concat([]kong.Option{kong.PostBuild(addSecretFiles), kong.DefaultEnvars(envPrefix),
		kong.PostBuild(addPlainEnvars), kong.WithBeforeResolve(inv.useConfigFile)}, options)
	parser, err := kong.New(cfg, options...)
	if err != nil {
		return nil, err
	}
	if inv.Context, err = parser.Parse(args); err != nil {
		return nil, err
	}
	if stdin != nil {
		if err := readSecrets(inv.Flags(), stdin); err != nil {
			return nil, err
		}
	}
	if err := checkMinimums(parser.Model); err != nil {
		return nil, err
	}
	return inv, nil
}

// useConfigFile loads the configuration file, if a flag names one. Kong calls it for each part of
// the command line, before it asks the resolvers for the values that are not set yet.
func (inv *Invocation) useConfigFile(ctx *kong.Context) error {
	if inv.loaded {
		return nil
	}
	inv.loaded = true
	i := slices.IndexFunc(ctx.Model.Flags, func(f *kong.Flag) bool { return f.Name == configFlag })
	if i < 0 {
		return nil
	}
	path, _ := ctx.FlagValue(ctx.Model.Flags[i]).(string)
	if path == "" {
		return nil
	}
	file, err := loadConfig(path, ctx.Model)
	if err != nil {
		return fmt.Errorf("--%s: %w", configFlag, err)
	}
	var secrets []string
	for _, f := range allFlags(ctx.Model.Node) {
		if e, ok := file[f.Name]; ok && isSecret(f) && strings.Join(e.values, "") != "" {
			secrets = append(secrets, f.Name)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if slices.Sort(secrets); len(secrets) > 0 && info.Mode().Perm()&0o004 != 0 {
		inv.Warnings = append(inv.Warnings, fmt.Sprintf("other users of this machine can read %s, "+
			"which holds secrets (%s): chmod o-r", path, strings.Join(slices.Compact(secrets), ", ")))
	}
	ctx.AddResolver(file)
	return nil
}

// PrintHelp prints the help of a command: its own flags, then those of all commands. Without a command,
// it prints the flags of the default command.
func PrintHelp(opt kong.HelpOptions, ctx *kong.Context) error {
	shared := &kong.Group{Key: "shared", Title: "Flags of all commands:"}
	for _, f := range ctx.Model.Flags {
		f.Group = shared
	}
	ctx.Model.HelpFlag.Help = "Show this help."
	if ctx.Selected() == nil {
		// The parser shows the flags of a command only in the help of that command.
		ctx.Model.Flags = append(ctx.Model.Flags, ctx.Model.DefaultCmd.Flags...)
	}
	return kong.DefaultHelpPrinter(opt, ctx)
}

// addPlainEnvars gives every flag the variable of its name in capitals, such as
// JOURNEYMAN_BACKUP_S3_REGION. The parser would separate digits, as in JOURNEYMAN_BACKUP_S_3_REGION.
func addPlainEnvars(k *kong.Kong) error {
	plain, letters := strings.NewReplacer("-", "_"), strings.NewReplacer("_", "")
	for _, f := range allFlags(k.Model.Node) {
		name := envPrefix + "_" + strings.ToUpper(plain.Replace(f.Name))
		if len(f.Envs) == 1 && f.Envs[0] != name && letters.Replace(f.Envs[0]) == letters.Replace(name) {
			f.Envs = []string{name}
			f.Tag.Envs = f.Envs
		}
	}
	return nil
}

// chosen returns the value of a flag that has a list of values and no default, or "". Such a flag is a
// pointer: the parser would otherwise name the empty value among the allowed ones.
func chosen(flag *string) string {
	if flag == nil {
		return ""
	}
	return *flag
}

// isSecret reports whether the value of a flag must not be shown.
func isSecret(f *kong.Flag) bool { return f.Tag != nil && f.Tag.Has("secret") }

// addSecretFiles adds a flag NAME-file for each flag NAME with the tag secret.
func addSecretFiles(k *kong.Kong) error {
	addSecretFilesTo(k.Model.Node)
	return nil
}

func addSecretFilesTo(node *kong.Node) {
	has := map[string]bool{}
	for _, f := range node.Flags {
		has[f.Name] = true
	}
	var flags []*kong.Flag
	for _, f := range node.Flags {
		if flags = append(flags, f); isSecret(f) && !has[f.Name+fileSuffix] {
			flags = append(flags, secretFile(f))
		}
	}
	node.Flags = flags
	for _, child := range node.Children {
		addSecretFilesTo(child)
	}
}

// secretFile returns the flag that names the file of a secret. It is read like a flag of text.
func secretFile(of *kong.Flag) *kong.Flag {
	value, tag := *of.Value, *of.Tag
	value.Name = of.Name + fileSuffix
	value.Help = "File with " + of.Tag.Get("secret") + "; - is standard input."
	value.Target = reflect.New(of.Target.Type()).Elem()
	value.Tag, value.OrigHelp, value.Set = &tag, value.Help, false
	tag.Envs = nil
	f := &kong.Flag{Value: &value, Group: of.Group, PlaceHolder: "FILE"}
	value.Flag = f
	return f
}
