package tool

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// hiding has styles that hide a text.
var hiding = []string{
	"display:none", "DISPLAY : None !important", "display:none;display:block;display:none", "visibility:hidden", "visibility:collapse",
	"opacity:0", "opacity:0.0", "opacity: 0%", "opacity:.01", "filter:opacity(0)",
	"font-size:0", "font-size:0px", "font-size:1px", "font-size: 1PX !important", "font-size:0.1em", "font-size:1pt", "font-size:0%",
	"font:0/0 a", "font:1px/1px Arial,sans-serif", "font-size:1px;line-height:1px;color:#ffffff;max-height:0px",
	"color:#fff", "color:#FFFFFF", "color:white", "color:rgb(255,255,255)", "color: rgb(255 255 255)", "color:#fefefe", "color:#ffffffff",
	"color:hsl(0,0%,100%)", "color:rgba(0,0,0,0)", "color:transparent", "color:#0000", "-webkit-text-fill-color:transparent",
	"color:#333;background:#333", "background-color:#112233;color:#112234", "color:red;background-color:#f00",
	"background:url(x.png;a);background:#0a0a0a;color:#000", "color:tomato;background:tomato", "color:white !important;color:black",
	"position:absolute;left:-9999px", "position:fixed;top:-1000em", "position:absolute;left:-100%", "position:relative;left:-5000px",
	"text-indent:-9999px", "text-indent:-999em", "margin-left:-9999px", "position:absolute;clip:rect(0 0 0 0)",
	"position:absolute;clip:rect(1px, 1px, 1px, 1px)", "clip-path:inset(50%)", "transform:scale(0)", "transform:translateX(-9999px)",
	"/* x */ display/**/:/**/none", "background-image:url('a;b');display:none",
}

// closing has styles that hide the text of a block, which has the size that they give it.
var closing = []string{
	"max-height:0;overflow:hidden", "overflow:hidden;height:0px", "width:0;overflow:hidden", "max-width:1px;overflow:hidden",
}

// showing has styles that look similar and hide nothing.
var showing = []string{
	"display:block", "visibility:visible", "opacity:1", "opacity:.5", "font-size:11px", "font-size:0.8em", "font:12px/0 Arial", "font-size:small",
	"color:#000", "color:#eee", "color:white;background:#333", "background:black;color:#fff", "background-color:rgb(20,20,20);color:white",
	"color:white;background:url(x.png)", "color:white;background-image:linear-gradient(red,blue)", "color:#fff;background:#fff url(x.png)",
	"color:white;background-color:rgba(0,0,0,.5)", "color:rgba(0,0,0,.7)", "color:var(--x)", "color:inherit", "color:white;color:black",
	"max-height:0", "height:0", "overflow:hidden", "max-height:500px;overflow:hidden", "max-width:100%;overflow:hidden", "width:1%",
	"left:-9999px", "position:absolute;left:10px", "text-indent:-18pt", "margin-left:-5px", "line-height:0", "font-size:0;font-size:14px",
	"mso-hide:all", "position:absolute;top:5000px", "position:relative;bottom:9999px", "display:table;height:0;overflow:hidden",
	"display:inline;max-height:0;overflow:hidden", "transform:scale(1)", "x-display:none", "background-image:none;color:blue", "display:none;display:inline",
}

// frames has the ways to put a text with a style into a page.
var frames = map[string]string{
	"block":     `<div style="%s">needle</div>`,
	"words":     `<p>before <span style="%s">needle</span> after</p>`,
	"nested":    `<div style="%s"><p><b><i>needle</i></b></p></div>`,
	"table":     `<table><tr><td style="%s"><table><tr><td>needle</td></tr></table></td></tr></table>`,
	"class":     `<style>.x{%s} @media (max-width:9px){.x{display:block!important}}</style><div class="a x b">needle</div>`,
	"element":   `<style>p.x , #y > b { %s }</style><p class=x>needle</p>`,
	"id":        `<style><!-- #z{%s} --></style><div id=Z>needle</div>`,
	"beginning": `<body style="margin:0;background:#fff"><div style="%s">needle</div>`,
	"white":     `<table bgcolor=black><tr><td bgcolor="#ffffff"><span style="%s">needle</span></td></tr></table>`,
}

// unsized has the frames whose element is a part of a table or of a line: its size is that of the text.
var unsized = map[string]bool{"words": true, "table": true, "white": true}

// TestHiddenText generates mails of all frames and styles: a text that no reader sees is left out, and no other.
func TestHiddenText(t *testing.T) {
	t.Parallel()
	for frame, form := range frames {
		t.Run(frame, func(t *testing.T) {
			t.Parallel()
			hidden, shown := slices.Concat(hiding, closing), showing
			if unsized[frame] {
				hidden, shown = hiding, slices.Concat(showing, closing)
				for _, display := range []string{"display:inline-block;", "display:block;"} {
					for _, style := range closing {
						hidden = append(slices.Clip(hidden), display+style)
					}
				}
			}
			for _, style := range hidden {
				page := fmt.Sprintf(form, style) + "<p>shown</p>"
				if text := mailText(page); strings.Contains(text, "needle") || !strings.Contains(text, "shown") {
					t.Errorf("%s\nbecomes %q", page, text)
				}
			}
			for _, style := range shown {
				page := fmt.Sprintf(form, style)
				if text := mailText(page); !strings.Contains(text, "needle") {
					t.Errorf("%s\nbecomes %q", page, text)
				}
			}
		})
	}
}

// TestVisibleInsideHidden checks pages whose parts are visible for other reasons than their own style.
func TestVisibleInsideHidden(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ page, want string }{
		"white on a dark cell":      {`<table bgcolor="#222222"><tr><td><font color="#ffffff">a</font></td></tr></table>`, "|  |\n|---|\n| a |"},
		"white on a dark page":      {`<body bgcolor=black text=white><p>a</p>`, "a"},
		"white on a picture":        {`<table><tr><td background="x.png" bgcolor="#ffffff"><p style="color:#fff">a</td></tr></table>`, "|  |\n|---|\n| a |"},
		"white on a row":            {`<table><tr bgcolor="#1a73e8"><td style="color:white">a</td></tr></table>`, "|  |\n|---|\n| a |"},
		"white by a style sheet":    {`<style>.dark td{background:#000}</style><table class=dark><tr><td style="color:#fff">a</td></tr></table>`, "|  |\n|---|\n| a |"},
		"white in the dark":         {`<style>@media (prefers-color-scheme:dark){.d{background:#000 !important}}</style><div class=d style="color:#fff">a</div>`, "a"},
		"cells without gaps":        {`<td style="font-size:0"><div style="font-size:0px"><span style="font-size:14px">a</span></div></td>`, "a"},
		"shown inside hidden":       {`<div style="visibility:hidden">x<span style="visibility:visible">a</span></div>`, "a"},
		"black inside white":        {`<div style="color:#fff">x<b style="color:#000">a</b></div>`, "**a**"},
		"a link inside white":       {`<div style="color:#fff">x<a href="http://e.example/">a</a></div>`, "[a](http://e.example/)"},
		"a link that is white":      {`<div style="color:#fff">x<a style="color:inherit" href="http://e.example/">a</a></div>b`, "b"},
		"a button":                  {`<!--[if mso]><v:roundrect>a</v:roundrect><![endif]--><a href="http://e.example/" style="background:#06c;color:#fff;mso-hide:all">a</a>`, "[a](http://e.example/)"},
		"the form of Gmail":         {`<span style="mso-hide:all">a</span>`, "a"},
		"a row with an ellipsis":    {`<table><tr><td style="max-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap">a</td></tr></table>`, "|  |\n|---|\n| a |"},
		"a low cell":                {`<table><tr><td style="height:1px;overflow:hidden">a</td></tr></table>`, "|  |\n|---|\n| a |"},
		"a low word":                {`<p>b <span style="height:0;overflow:hidden">a</span></p>`, "b a"},
		"a floating word":           {`<p>b <span style="float:left;height:0;overflow:hidden">a</span></p>`, "b"},
		"the form for others":       {`<p>b<!--[if mso]>x<![endif]--> <span style="mso-hide:all">a</span></p>`, "b a"},
		"a picture":                 {`<div style="font-size:0"><img src=x alt="Sales" width=600></div>`, "[image: Sales]"},
		"a dot":                     {`<img src=x alt="dot" width="1" height="1">a`, "a"},
		"an attribute":              {`<p hidden>x</p>a`, "a"},
		"a font":                    {`<font color=white size=1>x</font>a`, "a"},
		"a long style":              {`<div style="color:#000;` + strings.Repeat(" ", 8<<10) + `display:none">x</div>a`, "a"},
		"a preheader":               {`<div style="display:none;font-size:1px;color:#fff;line-height:1px;max-height:0;max-width:0;opacity:0;overflow:hidden;mso-hide:all">x&zwnj;&nbsp;</div>a`, "a"},
		"room for a picture":        {`<div style="height:0;padding-bottom:56.25%;overflow:hidden">a</div>`, "a"},
		"styles for a small window": {`<style media="(max-width:600px)">.x{display:none}</style><p class=x>a</p>`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			if text := mailText(tt.page); text != tt.want && !strings.HasPrefix(text, tt.want+"\n") {
				t.Errorf("%s\nbecomes %q", tt.page, text)
			}
		})
	}
}
