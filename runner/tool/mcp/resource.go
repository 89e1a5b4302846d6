package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/runner/tool"
)

// Limits of resources of servers.
const (
	maxURI       = 4096 // bytes
	maxResources = 100  // resources in a list
)

// readResourceName is the name of the tool that reads the resources of a server.
const readResourceName = "read_resource"

// resourceTool describes the tool that reads the resources of the server. It is omitted if the
// server has a tool with the same name.
func (s *server) resourceTool() tool.RemoteTool {
	return tool.RemoteTool{Server: s.Name, Tool: readResourceName, Resource: true, Spec: tool.Spec{
		Name: modelName(s.Name, readResourceName),
		Description: "Reads a resource of the server " + s.Name + " by its URI, such as results of its tools name. " +
			"Without uri it lists the resources.",
		InputSchema: json.RawMessage(`{"properties":{"uri":{"type":"string"}},"type":"object"}`),
		Repeatable:  true, Parallel: true, // reading changes nothing
	}}
}

// readable reports whether the server has resources: it declares the capability, or a result
// contained a resource.
func (c *session) readable() bool {
	init := c.client.InitializeResult()
	return c.server.linked.Load() || init != nil && init.Capabilities != nil && init.Capabilities.Resources != nil
}

// resource reads the resource in input. Without a uri it lists the resources.
func (s *server) resource(ctx context.Context, input json.RawMessage) (result, error) {
	var args struct{ URI string }
	if err := json.Unmarshal(input, &args); err != nil {
		return result{}, tool.Errorf("uri must be a string")
	}
	if args.URI == "" {
		return s.ask(ctx, readResourceName, func(ctx context.Context, sess *session, _ func()) (result, error) {
			return await(ctx, s.pool, func() (result, error) { return sess.resources(ctx) })
		})
	}
	// Only the server resolves the URI, so no scheme is a risk for this machine.
	if u, err := url.Parse(args.URI); err != nil || u.Scheme == "" || len(args.URI) > maxURI {
		return result{}, tool.Errorf("uri must be an absolute URI of at most %d bytes", maxURI)
	}
	return s.ask(ctx, readResourceName, func(ctx context.Context, sess *session, _ func()) (result, error) {
		return await(ctx, s.pool, func() (result, error) { return sess.resource(ctx, args.URI) })
	})
}

// resource reads one resource.
func (c *session) resource(ctx context.Context, uri string) (result, error) {
	r, err := c.client.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return result{}, err
	}
	var out result
	var texts []string
	for _, content := range r.Contents {
		if content != nil && content.URI == uri {
			content.URI = "" // the model has it in the call
		}
		texts = out.embed(content, texts)
	}
	out.text = strings.Join(texts, "\n\n")
	return out, nil
}

// resources lists the first page of the server's resources and of its resource templates.
func (c *session) resources(ctx context.Context) (out result, err error) {
	list, err := c.client.ListResources(ctx, nil)
	if err != nil {
		return out, err
	}
	for _, r := range list.Resources[:min(len(list.Resources), maxResources)] {
		if r != nil {
			out.links = append(out.links, resourceLine(r.Name, r.URI, r.MIMEType, r.Description, &r.Size))
		}
	}
	// A server without templates may return an error for the list of templates.
	templates, err := c.client.ListResourceTemplates(ctx, nil)
	if err == nil {
		for _, t := range templates.ResourceTemplates[:min(len(templates.ResourceTemplates), maxResources)] {
			if t != nil {
				out.links = append(out.links, resourceLine(t.Name, t.URITemplate, t.MIMEType, t.Description, nil))
			}
		}
	}
	if list.NextCursor != "" || len(list.Resources) > maxResources {
		out.links = append(out.links, "[more resources are left out]")
	}
	if len(out.links) == 0 {
		out.text = "the server lists no resources"
	}
	return out, nil
}

// resourceLine returns one line for the model about a resource.
func resourceLine(name, uri, mediaType, description string, size *int64) string {
	line := "Resource"
	// Texts of the server become one short line, so that they cannot imitate further entries.
	if name = oneLine(name, 200); name != "" {
		line += fmt.Sprintf(" %q", name)
	}
	var details []string
	if mediaType = oneLine(mediaType, 100); mediaType != "" {
		details = append(details, mediaType)
	}
	if size != nil && *size > 0 {
		details = append(details, fmt.Sprintf("%d bytes", *size))
	}
	if len(details) > 0 {
		line += " (" + strings.Join(details, ", ") + ")"
	}
	if line += ": " + oneLine(uri, maxURI); description != "" {
		line += " - " + oneLine(description, 300)
	}
	return line
}

// oneLine returns at most n bytes of a text, without line breaks.
func oneLine(text string, n int) string { return shorten(strings.Join(strings.Fields(text), " "), n) }
