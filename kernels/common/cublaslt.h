// Matrix products through cuBLASLt: D = activation(alpha * op(A) op(B) + beta * C + bias), row-major, the algorithm
// timed once per problem and kept.
//
// cuBLASLt's heuristic orders its algorithms by a model of the machine; running the best few on the real operands is
// worth some per cent on large shapes and far more on thin ones. No torch here: handles live per device, scratch memory
// comes from the caller. Safe to call from several threads.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "autotune.h"
#include "check.h"

namespace kernels {

[[noreturn]] __attribute__((cold, noinline)) inline void throw_cublas_error(cublasStatus_t status,
                                                                            const char* expression, const char* file,
                                                                            int line) {
    throw_api_error("cuBLASLt", expression, cublasLtGetStatusName(status), cublasLtGetStatusString(status), file, line);
}

}  // namespace kernels

// Throws unless the cuBLASLt call returned CUBLAS_STATUS_SUCCESS.
#define CUBLAS_CHECK(expression)                                                                 \
    do {                                                                                         \
        const cublasStatus_t cublas_check_status = (expression);                                 \
        if (__builtin_expect(cublas_check_status != CUBLAS_STATUS_SUCCESS, 0)) {                 \
            ::kernels::throw_cublas_error(cublas_check_status, #expression, __FILE__, __LINE__); \
        }                                                                                        \
    } while (0)

namespace kernels {

// A problem: what the choice of algorithm depends on. Row-major: A is (m, k), B is (k, n), C and D are (m, n); a
// transposed operand is stored the other way round. Leading dimensions are row strides in elements.
struct Gemm {
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    int64_t lda, ldb, ldc, ldd;
    cudaDataType_t type;          // of A, B, C, D and the bias
    cublasComputeType_t compute;  // CUBLAS_COMPUTE_32F is strict fp32, CUBLAS_COMPUTE_32F_FAST_TF32 tensor cores
    cublasLtEpilogue_t epilogue;  // CUBLASLT_EPILOGUE_{DEFAULT, BIAS, RELU_BIAS, GELU_BIAS, ...}
};

// The fp32 product of packed row-major matrices: A (m, k), B (k, n) or, transposed, (n, k) as linear layers store their
// weights; C and D (m, n); no epilogue.
inline Gemm packed_gemm(int64_t m, int64_t n, int64_t k, bool transpose_b, cublasComputeType_t compute) {
    Gemm gemm{};
    gemm.m = m;
    gemm.n = n;
    gemm.k = k;
    gemm.transpose_b = transpose_b;
    gemm.lda = k;
    gemm.ldb = transpose_b ? k : n;
    gemm.ldc = n;
    gemm.ldd = n;
    gemm.type = CUDA_R_32F;
    gemm.compute = compute;
    gemm.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    return gemm;
}

// Device pointers. D must not overlap A, B, C or the bias: while algorithms are timed D is written many times.
struct GemmOperands {
    const void* a;
    const void* b;
    const void* c;     // read only if beta != 0; null otherwise
    const void* bias;  // n values, one per column; null without a bias epilogue
    void* d;
    float alpha, beta;
    void* workspace;
    int64_t workspace_bytes;
};

enum class GemmSearch { kTimed, kHeuristic };

// One handle per device, made on first use and never destroyed: the driver may be gone before static destructors run.
inline cublasLtHandle_t cublaslt_handle(int device) {
    static std::mutex mutex;
    static auto& handles = *new std::map<int, cublasLtHandle_t>();
    const std::lock_guard<std::mutex> lock(mutex);
    cublasLtHandle_t& handle = handles[device];
    if (handle == nullptr) CUBLAS_CHECK(cublasLtCreate(&handle));
    return handle;
}

namespace detail {

constexpr int kMaxGemmCandidates = 32;
constexpr uint32_t kMaxAlignment = 256;

// The largest power of two, up to kMaxAlignment, that divides the address; kMaxAlignment for null.
inline uint32_t alignment_of(const void* pointer) {
    const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer)) | kMaxAlignment;
    return static_cast<uint32_t>(address & (~address + 1));
}

// cuBLASLt is column-major. A row-major product D = A B is the column-major D' = B' A', so its "A" is our B and the
// other way round; m and n change places, and the bias, ours per column, becomes theirs per row, which is what it
// supports.
class GemmDescriptors {
  public:
    GemmDescriptors(const Gemm& gemm, const void* bias) {
        CUBLAS_CHECK(cublasLtMatmulDescCreate(&operation, gemm.compute, CUDA_R_32F));
        const cublasOperation_t theirs_a = gemm.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
        const cublasOperation_t theirs_b = gemm.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
        set(CUBLASLT_MATMUL_DESC_TRANSA, theirs_a);
        set(CUBLASLT_MATMUL_DESC_TRANSB, theirs_b);
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, gemm.epilogue);
        if (bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        layout(&a, gemm.type, gemm.transpose_b ? gemm.k : gemm.n, gemm.transpose_b ? gemm.n : gemm.k, gemm.ldb);
        layout(&b, gemm.type, gemm.transpose_a ? gemm.m : gemm.k, gemm.transpose_a ? gemm.k : gemm.m, gemm.lda);
        layout(&c, gemm.type, gemm.n, gemm.m, gemm.ldc);
        layout(&d, gemm.type, gemm.n, gemm.m, gemm.ldd);
    }
    ~GemmDescriptors() {
        for (cublasLtMatrixLayout_t matrix : {a, b, c, d}) {
            if (matrix != nullptr) cublasLtMatrixLayoutDestroy(matrix);
        }
        if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
    }
    GemmDescriptors(const GemmDescriptors&) = delete;
    GemmDescriptors& operator=(const GemmDescriptors&) = delete;

    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr, d = nullptr;

  private:
    template <typename T>
    void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
        CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)));
    }
    static void layout(cublasLtMatrixLayout_t* matrix, cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld) {
        CUBLAS_CHECK(
            cublasLtMatrixLayoutCreate(matrix, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld));
    }
};

class GemmPreference {
  public:
    GemmPreference() { CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference_)); }
    ~GemmPreference() { cublasLtMatmulPreferenceDestroy(preference_); }
    GemmPreference(const GemmPreference&) = delete;
    GemmPreference& operator=(const GemmPreference&) = delete;
    template <typename T>
    void set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
        CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof(value)));
    }
    cublasLtMatmulPreference_t get() const { return preference_; }

  private:
    cublasLtMatmulPreference_t preference_ = nullptr;
};

// The heuristic's algorithms for this problem at these alignments, best guess first; empty when it knows none.
inline std::vector<cublasLtMatmulAlgo_t> gemm_candidates(cublasLtHandle_t handle, const GemmDescriptors& descriptors,
                                                         const std::array<uint32_t, 4>& alignments,
                                                         int64_t workspace_bytes) {
    GemmPreference preference;
    preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_bytes));
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[0]);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[1]);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2]);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[3]);
    std::array<cublasLtMatmulHeuristicResult_t, kMaxGemmCandidates> results{};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, descriptors.operation, descriptors.a, descriptors.b, descriptors.c,
                                       descriptors.d, preference.get(), kMaxGemmCandidates, results.data(), &found);
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return algorithms;
    CUBLAS_CHECK(status);
    for (int i = 0; i < found; ++i) {
        if (results[i].state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(results[i].algo);
    }
    return algorithms;
}

}  // namespace detail

// Enqueues the product on `stream`. Returns false, having enqueued nothing, when cuBLASLt has no algorithm for the
// problem (an epilogue it cannot fuse at this precision, say). Throws kernels::Error when a call fails.
//
// The first call of a problem times the candidates: it blocks the calling thread for some tens of milliseconds, and
// touches no memory but D and the workspace. During a CUDA graph capture nothing can be timed: the heuristic's first is
// used, and not remembered.
inline bool run_gemm(const Gemm& gemm, const GemmOperands& operands, GemmSearch search, cudaStream_t stream) {
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    const cublasLtHandle_t handle = cublaslt_handle(device);
    const detail::GemmDescriptors descriptors(gemm, operands.bias);
    const void* c = operands.beta != 0 ? operands.c : operands.d;

    const auto run = [&](const cublasLtMatmulAlgo_t& algorithm) {
        return cublasLtMatmul(handle, descriptors.operation, &operands.alpha, operands.b, descriptors.a, operands.a,
                              descriptors.b, &operands.beta, c, descriptors.c, operands.d, descriptors.d, &algorithm,
                              operands.workspace, static_cast<size_t>(operands.workspace_bytes), stream);
    };

    // The bias is read with the vector width of D's columns, so its alignment counts as D's.
    const std::array<uint32_t, 4> alignments = {
        detail::alignment_of(operands.b), detail::alignment_of(operands.a), detail::alignment_of(c),
        std::min(detail::alignment_of(operands.d), detail::alignment_of(operands.bias))};

    using Key = std::array<int64_t, 20>;
    const Key key = {device,
                     gemm.m,
                     gemm.n,
                     gemm.k,
                     gemm.transpose_a,
                     gemm.transpose_b,
                     gemm.lda,
                     gemm.ldb,
                     gemm.ldc,
                     gemm.ldd,
                     gemm.type,
                     gemm.compute,
                     gemm.epilogue,
                     operands.beta != 0,
                     static_cast<int64_t>(search),
                     operands.workspace_bytes,
                     alignments[0],
                     alignments[1],
                     alignments[2],
                     alignments[3]};
    static std::mutex mutex;
    static auto& chosen = *new std::map<Key, std::optional<cublasLtMatmulAlgo_t>>();  // nothing: none runs
    const auto remember = [&](const std::optional<cublasLtMatmulAlgo_t>& algorithm) {
        const std::lock_guard<std::mutex> lock(mutex);
        chosen.emplace(key, algorithm);
    };
    {
        const std::lock_guard<std::mutex> lock(mutex);
        const auto known = chosen.find(key);
        if (known != chosen.end()) {
            if (known->second) CUBLAS_CHECK(run(*known->second));
            return known->second.has_value();
        }
    }

    const auto candidates = detail::gemm_candidates(handle, descriptors, alignments, operands.workspace_bytes);
    if (candidates.empty()) {
        remember(std::nullopt);
        return false;
    }
    if (is_capturing(stream)) {
        CUBLAS_CHECK(run(candidates.front()));
        return true;
    }
    int best = 0;
    if (search == GemmSearch::kTimed) {
        best = fastest(static_cast<int>(candidates.size()), stream,
                       [&](int i) { return run(candidates[i]) == CUBLAS_STATUS_SUCCESS; });
        if (best < 0) {
            remember(std::nullopt);
            return false;
        }
    }
    remember(candidates[best]);
    CUBLAS_CHECK(run(candidates[best]));
    return true;
}

}  // namespace kernels
