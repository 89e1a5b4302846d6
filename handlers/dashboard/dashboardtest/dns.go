package dashboardtest

import (
	"context"
	"net"
)

// NoDNS is a resolver without any names.
type NoDNS struct{}

// LookupTXT finds nothing.
func (NoDNS) LookupTXT(_ context.Context, name string) ([]string, error) {
	return nil, unknownName(name)
}

// LookupMX finds nothing.
func (NoDNS) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	return nil, unknownName(name)
}

// LookupIPAddr finds nothing.
func (NoDNS) LookupIPAddr(_ context.Context, name string) ([]net.IPAddr, error) {
	return nil, unknownName(name)
}

// LookupAddr finds nothing.
func (NoDNS) LookupAddr(_ context.Context, addr string) ([]string, error) {
	return nil, unknownName(addr)
}

func unknownName(name string) error {
	return &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}
