// Findings: collected once each, told as text and as JSON.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "state.h"

#ifndef SIM_FOLDER
#define SIM_FOLDER "/utils/sim/"
#endif

namespace sim {

std::string last_fatal;

namespace {

std::mutex lock;
std::vector<Report> reports;
std::map<std::string, size_t> known;
std::vector<std::string> launched;  // kernel names in launch order, for whoever asks what ran
constexpr size_t MOST_REPORTS = 200;
constexpr size_t MOST_LAUNCHES = 10000;

// The innermost source line of a program counter that is not the simulator's own. Inlined calls are unfolded.
Place resolve(const void* pc) {
    static std::map<const void*, Place> cache;
    static std::set<std::string> names;
    auto found = cache.find(pc);
    if (found != cache.end()) return found->second;
    Place place;
    Dl_info info{};
    if (dladdr(pc, &info) && info.dli_fname) {
        // pc is a return address: the call is just before it.
        const size_t offset = static_cast<const char*>(pc) - static_cast<const char*>(info.dli_fbase) - 1;
        std::string quoted = "'";
        for (const char* c = info.dli_fname; *c; ++c) quoted += *c == '\'' ? std::string("'\\''") : std::string(1, *c);
        char offset_text[32];
        std::snprintf(offset_text, sizeof offset_text, "' 0x%zx", offset);
        // The preloaded AddressSanitizer must not follow into the helper.
        const std::string command = "LD_PRELOAD= addr2line -i -e " + quoted + offset_text + " 2>/dev/null";
        if (FILE* pipe = popen(command.c_str(), "r")) {
            char text[4096];
            while (std::fgets(text, sizeof text, pipe)) {
                std::string line(text);
                const size_t colon = line.rfind(':');
                if (colon == std::string::npos || line[0] == '?') continue;
                const std::string file = line.substr(0, colon);
                const int number = std::atoi(line.c_str() + colon + 1);
                if (number <= 0) continue;
                place.file = names.insert(file).first->c_str();
                place.line = number;
                const bool own = file.find(SIM_FOLDER) != std::string::npos || file.compare(0, 5, "/usr/") == 0;
                if (!own) break;
            }
            pclose(pipe);
        }
    }
    cache[pc] = place;
    return place;
}

void settle(Place& place) {
    if (!place.file && place.pc) {
        const void* pc = place.pc;
        place = resolve(pc);
        place.pc = pc;
    }
}

std::string escaped(const std::string& text) {
    std::string out = "\"";
    for (unsigned char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += static_cast<char>(c);
        } else if (c < 0x20) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", c);
            out += code;
        } else {
            out += static_cast<char>(c);
        }
    }
    return out + "\"";
}

std::string triple(const uint3& v) {
    return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}
std::string json(const uint3& v) {
    return "[" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + "]";
}
std::string json(const Place& p) {
    if (!p.file) return "null";
    return "{\"file\": " + escaped(p.file) + ", \"line\": " + std::to_string(p.line) + "}";
}
std::string text(const Place& p) {
    return p.file ? std::string(p.file) + ":" + std::to_string(p.line) : std::string("an unknown line");
}

}  // namespace

uint3 thread_coordinates(const BlockState* b, u32 id) {
    const dim3 d = b->launch->config.block;
    return uint3{id % d.x, id / d.x % d.y, id / (d.x * d.y)};
}

uint3 block_coordinates(const Launch* l, u64 linear) {
    const dim3 g = l->config.grid;
    return uint3{static_cast<u32>(linear % g.x), static_cast<u32>(linear / g.x % g.y),
                 static_cast<u32>(linear / (u64(g.x) * g.y))};
}

Report report_here(const char* kind, std::string message, Place place) {
    Report r;
    r.kind = kind;
    r.message = std::move(message);
    r.place = place;
    if (BlockState* b = here()) {
        r.kernel = b->launch->kernel.name;
        r.launched = {b->launch->kernel.file, b->launch->kernel.line};
        r.has_thread = true;
        r.block = b->index;
        r.thread = thread_coordinates(b, b->current);
    }
    return r;
}

std::string describe(const Report& r) {
    std::string out = r.kind == "unsupported" ? "[sim:unsupported] " : "[sim:" + r.kind + "] ";
    out += text(r.place) + ": " + r.message;
    out += "; kernel " + r.kernel;
    if (r.has_thread) out += ", block " + triple(r.block) + ", thread " + triple(r.thread);
    if (r.has_other)
        out += "; the other: block " + triple(r.other_block) + ", thread " + triple(r.other_thread) + " at " +
               text(r.other);
    return out;
}

void add_report(Report r) {
    std::lock_guard<std::mutex> hold(lock);
    settle(r.place);
    settle(r.other);
    // What the same line does in another thread, or reached by other inlined code, is the same finding.
    std::string key = r.kind + "|" + r.kernel + "|" + text(r.place);
    if (r.kind == "race") key += "|" + text(r.other);
    if (r.fatal) last_fatal = describe(r);
    auto found = known.find(key);
    if (found != known.end()) {
        ++reports[found->second].count;
        return;
    }
    if (reports.size() >= MOST_REPORTS) return;
    known[key] = reports.size();
    reports.push_back(std::move(r));
}

void record_launch(const Kernel& kernel) {
    std::lock_guard<std::mutex> hold(lock);
    if (launched.size() < MOST_LAUNCHES) launched.push_back(kernel.name);
}

}  // namespace sim

extern "C" {

// {"reports": [...], "launches": [...]}: every finding since the last call with `clear`. The text stays valid until the
// next call.
__attribute__((visibility("default"))) const char* kernel_workbench_sim_reports(int clear) {
    using namespace sim;
    static std::string out;
    std::lock_guard<std::mutex> hold(lock);
    out = "{\"reports\": [";
    const char* comma = "";
    for (Report& r : reports) {
        out += comma;
        comma = ",";
        out += "\n {\"kind\": " + escaped(r.kind) + ", \"message\": " + escaped(r.message) +
               ", \"kernel\": " + escaped(r.kernel) + ", \"place\": " + json(r.place) +
               ", \"launched\": " + json(r.launched) + ", \"block\": " + (r.has_thread ? json(r.block) : "null") +
               ", \"thread\": " + (r.has_thread ? json(r.thread) : "null") +
               ", \"other_place\": " + (r.has_other ? json(r.other) : "null") +
               ", \"other_block\": " + (r.has_other ? json(r.other_block) : "null") +
               ", \"other_thread\": " + (r.has_other ? json(r.other_thread) : "null") +
               ", \"fatal\": " + (r.fatal ? "true" : "false") + ", \"count\": " + std::to_string(r.count) +
               ", \"text\": " + escaped(describe(r)) + "}";
    }
    out += "], \"launches\": [";
    comma = "";
    for (const std::string& name : launched) {
        out += comma + escaped(name);
        comma = ", ";
    }
    out += "]}";
    if (clear) {
        reports.clear();
        known.clear();
        launched.clear();
        last_fatal.clear();
    }
    return out.c_str();
}
}
