package pdf

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Memory limits of a process that reads, in MiB.
const (
	// Memory is the memory of a process that reads one document. For large documents it needs more.
	Memory = moduleMemory + 80

	// CompileMemory is the memory of a process that compiles PDFium.
	CompileMemory = 400

	moduleMemory = 144 // of PDFium itself, with a copy of the document, and with decoded pictures
)

// A Reader reads PDF documents. It is not safe for concurrent use. After an error of PDFium itself it
// must not be used again.
type Reader struct {
	pool   pdfium.Pool
	pdfium pdfium.Pdfium
	memory *memory
}

// Open returns a Reader with the compiled PDFium of a folder. If the folder lacks it, Open returns an error. If
// folder is "", Open compiles PDFium, which takes seconds and CompileMemory.
//
// Open reads files. The Reader itself reads none, and maps no memory for code.
func Open(folder string) (*Reader, error) {
	if folder == "" {
		return start(wazero.NewCompilationCache(), debug.FreeOSMemory)
	}
	dir, err := openCache(folder)
	if err != nil {
		return nil, err
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, err
	}
	return start(cache, func() {})
}

// start starts PDFium, whose compiled form is in the cache or is added to it. It calls compiled before PDFium gets its
// memory.
func start(cache wazero.CompilationCache, compiled func()) (*Reader, error) {
	r, err := load(cache)
	if err == nil {
		compiled()
		r.pdfium, err = r.pool.GetInstance(time.Minute)
	}
	return r, err
}

// load returns a Reader whose PDFium is compiled, and has not started.
func load(cache wazero.CompilationCache) (*Reader, error) {
	r := &Reader{memory: &memory{}}
	ctx := experimental.WithMemoryAllocator(context.Background(), r.memory)
	config := wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache).
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling)
	// Without an FSConfig, the library would let PDFium open every file of the machine.
	var err error
	r.pool, err = webassembly.Init(webassembly.Config{Context: ctx, MaxIdle: 1, MaxTotal: 1, RuntimeConfig: config,
		FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard})
	return r, err
}

// A memory is the memory of PDFium. It allocates the whole address space at once, so that growing copies
// nothing. The system only provides the pages that are used.
type memory struct {
	bytes   []byte
	refused bool // PDFium needs more than its limit
}

// Allocate implements experimental.MemoryAllocator.
func (m *memory) Allocate(uint64, uint64) experimental.LinearMemory {
	m.bytes, m.refused = make([]byte, moduleMemory<<20), false
	return m
}

// Reallocate returns the first size bytes, or nil if that is more than the limit.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.bytes)) {
		m.refused = true
		return nil
	}
	return m.bytes[:size]
}

// Free does nothing: the process ends after one document.
func (m *memory) Free() {}

// errMemory is the error if PDFium needs more memory than its limit.
var errMemory = errors.New("it takes too much memory to read")
