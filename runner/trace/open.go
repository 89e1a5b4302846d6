package trace

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Open returns a tracer configured by the standard OTEL_ environment variables, or nil if they set
// no endpoint. The SDK itself reads the variables for the sampler, the batches and the resource.
func Open(ctx context.Context, getenv func(string) string, version string, log *slog.Logger) (*Tracer, error) {
	e := environment(getenv)
	endpoint, err := e.endpoint()
	if err != nil || endpoint == "" {
		return nil, err
	}
	exporter, err := e.exporter(endpoint, log)
	if err != nil {
		return nil, err
	}
	// The environment comes last, so that its attributes override the others.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "journeyman"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	// Batches are sent in the background, and a full queue drops new spans. A slow endpoint
	// therefore cannot delay a turn.
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(res), sdk.WithIDGenerator(ids{}))
	return &Tracer{provider, provider.Tracer("journeyman"), log}, nil
}

// Close exports the queued spans, until ctx ends. Spans that end later are dropped.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last traces are not exported", "err", err)
	}
}

// Flush exports the queued spans. It returns when they are sent or ctx ends.
func (t *Tracer) Flush(ctx context.Context) error { return t.provider.ForceFlush(ctx) }

// environment reads the standard variables of the OTLP exporter.
type environment func(string) string

// of returns a setting of the exporter: the variable for traces, or else the one for all signals.
func (e environment) of(name string) string {
	if v := e("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
		return v
	}
	return e("OTEL_EXPORTER_OTLP_" + name)
}

// endpoint returns the URL that receives traces, or "" if tracing is off.
func (e environment) endpoint() (string, error) {
	if strings.EqualFold(e("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	switch exporter := e("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return "", nil
	default:
		return "", fmt.Errorf("OTEL_TRACES_EXPORTER: %q is not supported; set it to otlp or none", exporter)
	}
	address, own := e("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), true
	if address == "" {
		address, own = e("OTEL_EXPORTER_OTLP_ENDPOINT"), false
	}
	if address == "" {
		return "", nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: must be an http:// or https:// address")
	}
	if p := e.of("PROTOCOL"); p != "" && p != "http/protobuf" {
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is not supported; set it to http/protobuf, "+
			"and the endpoint to the collector's port for HTTP, mostly 4318", p)
	}
	if !own { // the variable for traces holds the complete URL
		u = u.JoinPath("v1", "traces")
	}
	return u.String(), nil
}

func (e environment) exporter(endpoint string, log *slog.Logger) (*exporter, error) {
	x := &exporter{url: endpoint, log: log, header: http.Header{}, now: time.Now}
	for pair := range strings.SplitSeq(e.of("HEADERS"), ",") {
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case strings.TrimSpace(pair) == "":
		case !ok || err != nil: // the error does not quote the value: it may be a key
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: must be name=value, with commas between several")
		default:
			x.header.Set(strings.TrimSpace(name), value)
		}
	}
	milliseconds := 10_000
	if text := e.of("TIMEOUT"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			return nil, errors.New("OTEL_EXPORTER_OTLP_TIMEOUT: must be a number of milliseconds")
		}
		milliseconds = n
	}
	switch c := e.of("COMPRESSION"); c {
	case "", "none":
	case "gzip":
		x.gzip = true
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION: %q is not supported; set it to gzip or none", c)
	}
	secure, err := e.tls()
	if err != nil {
		return nil, err
	}
	x.timeout = time.Duration(milliseconds) * time.Millisecond
	x.client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure,
		ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute}}
	return x, nil
}

// tls returns the TLS configuration with the certificates that the environment names.
func (e environment) tls() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := e.of("CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE: the file holds no certificate")
		}
	}
	if cert, key := e.of("CLIENT_CERTIFICATE"), e.of("CLIENT_KEY"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
