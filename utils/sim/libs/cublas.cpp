// cuBLAS and cuBLASLt for the simulator: matrix products by ATen. Matrices are column-major unless a layout says
// otherwise; sums are fp32 (fp64 for doubles), inputs are rounded to TF32 where the compute type allows a device to.
#include "tensors.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <torch/types.h>

#include <sim/core.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace sim::libs;

namespace {

struct Handle {
    cudaStream_t stream = nullptr;
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
    cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
};

struct Matrix {
    const void* data;
    cudaDataType type;
    int64_t rows, columns, ld;  // as stored
    bool row_major;
    int64_t batch = 1, stride = 0;

    // (batch, rows, columns), or transposed.
    at::Tensor tensor(bool transposed) const {
        at::ScalarType dtype{};
        TORCH_CHECK(scalar_type(type, &dtype), "the simulator's cuBLAS has no data type ", static_cast<int>(type));
        at::Tensor t = row_major ? view(data, {batch, rows, columns}, {stride, ld, 1}, dtype)
                                 : view(data, {batch, rows, columns}, {stride, 1, ld}, dtype);
        return transposed ? t.transpose(1, 2) : t;
    }
};

at::Tensor product(const at::Tensor& a, const at::Tensor& b, cublasComputeType_t compute) {
    const at::ScalarType wide =
        a.scalar_type() == at::kDouble || a.scalar_type() == at::kChar ? at::kDouble : at::kFloat;
    at::Tensor x = a.to(wide), y = b.to(wide);
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32 && wide == at::kFloat && a.scalar_type() == at::kFloat)
        x = tf32(x), y = tf32(y);
    if (compute == CUBLAS_COMPUTE_32F_FAST_16F) x = x.to(at::kHalf).to(wide), y = y.to(at::kHalf).to(wide);
    if (compute == CUBLAS_COMPUTE_32F_FAST_16BF) x = x.to(at::kBFloat16).to(wide), y = y.to(at::kBFloat16).to(wide);
    return at::bmm(x, y);
}

double scalar(const void* pointer, cudaDataType type) {
    if (pointer == nullptr) return 0;
    switch (type) {
        case CUDA_R_64F:
            return *static_cast<const double*>(pointer);
        case CUDA_R_16F:
            return static_cast<float>(*static_cast<const c10::Half*>(pointer));
        case CUDA_R_32I:
            return *static_cast<const int*>(pointer);
        default:
            return *static_cast<const float*>(pointer);
    }
}

cudaDataType scale_of(cublasComputeType_t compute) {
    switch (compute) {
        case CUBLAS_COMPUTE_64F:
        case CUBLAS_COMPUTE_64F_PEDANTIC:
            return CUDA_R_64F;
        case CUBLAS_COMPUTE_16F:
        case CUBLAS_COMPUTE_16F_PEDANTIC:
            return CUDA_R_16F;
        case CUBLAS_COMPUTE_32I:
        case CUBLAS_COMPUTE_32I_PEDANTIC:
            return CUDA_R_32I;
        default:
            return CUDA_R_32F;
    }
}

template <class F>
cublasStatus_t guarded(F work) {
    try {
        at::NoGradGuard no_grad;
        return work();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "simulated cuBLAS: %s\n", error.what());
        return CUBLAS_STATUS_INTERNAL_ERROR;
    }
}

cublasStatus_t gemm(cublasOperation_t ta, cublasOperation_t tb, int64_t m, int64_t n, int64_t k, double alpha, Matrix a,
                    Matrix b, double beta, Matrix c, cublasComputeType_t compute) {
    if (m < 0 || n < 0 || k < 0 || a.ld < std::max<int64_t>(1, ta == CUBLAS_OP_N ? m : k) ||
        b.ld < std::max<int64_t>(1, tb == CUBLAS_OP_N ? k : n) || c.ld < std::max<int64_t>(1, m))
        return CUBLAS_STATUS_INVALID_VALUE;
    return guarded([&] {
        a.rows = ta == CUBLAS_OP_N ? m : k, a.columns = ta == CUBLAS_OP_N ? k : m;
        b.rows = tb == CUBLAS_OP_N ? k : n, b.columns = tb == CUBLAS_OP_N ? n : k;
        c.rows = m, c.columns = n;
        at::Tensor out = c.tensor(false);
        at::Tensor result = product(a.tensor(ta != CUBLAS_OP_N), b.tensor(tb != CUBLAS_OP_N), compute).mul_(alpha);
        if (beta != 0) result.add_(out.to(result.scalar_type()), beta);
        out.copy_(result);
        return CUBLAS_STATUS_SUCCESS;
    });
}

Handle* of(cublasHandle_t handle) {
    return reinterpret_cast<Handle*>(handle);
}

cublasComputeType_t default_compute(cublasHandle_t handle) {
    return of(handle)->math == CUBLAS_TF32_TENSOR_OP_MATH ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    *handle = reinterpret_cast<cublasHandle_t>(new Handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    delete of(handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    of(handle)->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
    *stream = of(handle)->stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    of(handle)->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
    *mode = of(handle)->math;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    of(handle)->pointers = mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
    *mode = of(handle)->pointers;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) {
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusName(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS:
            return "CUBLAS_STATUS_SUCCESS";
        case CUBLAS_STATUS_INVALID_VALUE:
            return "CUBLAS_STATUS_INVALID_VALUE";
        case CUBLAS_STATUS_NOT_SUPPORTED:
            return "CUBLAS_STATUS_NOT_SUPPORTED";
        default:
            return "CUBLAS_STATUS_INTERNAL_ERROR";
    }
}
const char* cublasGetStatusString(cublasStatus_t status) {
    return cublasGetStatusName(status);
}

#define SIM_GEMM(NAME, T, TYPE, COMPUTE)                                                                             \
    cublasStatus_t cublas##NAME##gemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, \
                                         int k, const T* alpha, const T* a, int lda, const T* b, int ldb,            \
                                         const T* beta, T* c, int ldc) {                                             \
        return gemm(ta, tb, m, n, k, double(*alpha), {a, TYPE, 0, 0, lda, false}, {b, TYPE, 0, 0, ldb, false},       \
                    double(*beta), {c, TYPE, 0, 0, ldc, false}, COMPUTE);                                            \
    }                                                                                                                \
    cublasStatus_t cublas##NAME##gemmStridedBatched(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb,    \
                                                    int m, int n, int k, const T* alpha, const T* a, int lda,        \
                                                    long long sa, const T* b, int ldb, long long sb, const T* beta,  \
                                                    T* c, int ldc, long long sc, int batch) {                        \
        return gemm(ta, tb, m, n, k, double(*alpha), {a, TYPE, 0, 0, lda, false, batch, sa},                         \
                    {b, TYPE, 0, 0, ldb, false, batch, sb}, double(*beta), {c, TYPE, 0, 0, ldc, false, batch, sc},   \
                    COMPUTE);                                                                                        \
    }
SIM_GEMM(S, float, CUDA_R_32F, default_compute(h))
SIM_GEMM(D, double, CUDA_R_64F, ((void)h, CUBLAS_COMPUTE_64F))
#undef SIM_GEMM

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                                          int k, const void* alpha, const void* a, cudaDataType at, int lda,
                                          long long sa, const void* b, cudaDataType bt, int ldb, long long sb,
                                          const void* beta, void* c, cudaDataType ct, int ldc, long long sc, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
    const cudaDataType scale = scale_of(compute);
    return gemm(ta, tb, m, n, k, scalar(alpha, scale), {a, at, 0, 0, lda, false, batch, sa},
                {b, bt, 0, 0, ldb, false, batch, sb}, scalar(beta, scale), {c, ct, 0, 0, ldc, false, batch, sc},
                compute);
}
cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType at, int lda, const void* b, cudaDataType bt,
                            int ldb, const void* beta, void* c, cudaDataType ct, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algo) {
    return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, at, lda, 0, b, bt, ldb, 0, beta, c, ct, ldc, 0, 1,
                                      compute, algo);
}

// ---- cuBLASLt ------------------------------------------------------------------------------------------------------

}  // extern "C"

namespace {

// Attributes by number, as the bytes that were set.
struct Attributes {
    std::map<int, std::vector<char>> values;
    template <class T>
    T get(int name, T otherwise) const {
        auto found = values.find(name);
        if (found == values.end() || found->second.size() < sizeof(T)) return otherwise;
        T value;
        std::memcpy(&value, found->second.data(), sizeof(T));
        return value;
    }
    cublasStatus_t set(int name, const void* data, size_t bytes) {
        values[name].assign(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    cublasStatus_t read(int name, void* data, size_t bytes, size_t* written) const {
        auto found = values.find(name);
        if (found == values.end()) return CUBLAS_STATUS_INVALID_VALUE;
        if (written) *written = found->second.size();
        std::memcpy(data, found->second.data(), std::min(bytes, found->second.size()));
        return CUBLAS_STATUS_SUCCESS;
    }
};

template <class H>
Attributes* attributes(H handle) {
    return reinterpret_cast<Attributes*>(handle);
}

Matrix matrix(const Attributes* layout, const void* data) {
    return {data,
            static_cast<cudaDataType>(layout->get<uint32_t>(CUBLASLT_MATRIX_LAYOUT_TYPE, CUDA_R_32F)),
            static_cast<int64_t>(layout->get<uint64_t>(CUBLASLT_MATRIX_LAYOUT_ROWS, 0)),
            static_cast<int64_t>(layout->get<uint64_t>(CUBLASLT_MATRIX_LAYOUT_COLS, 0)),
            layout->get<int64_t>(CUBLASLT_MATRIX_LAYOUT_LD, 0),
            layout->get<int32_t>(CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_COL) == CUBLASLT_ORDER_ROW,
            layout->get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1),
            layout->get<int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0)};
}

bool epilogue_known(int epilogue) {
    switch (epilogue) {
        case CUBLASLT_EPILOGUE_DEFAULT:
        case CUBLASLT_EPILOGUE_BIAS:
        case CUBLASLT_EPILOGUE_RELU:
        case CUBLASLT_EPILOGUE_RELU_BIAS:
        case CUBLASLT_EPILOGUE_GELU:
        case CUBLASLT_EPILOGUE_GELU_BIAS:
        case CUBLASLT_EPILOGUE_GELU_AUX:
        case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
            return true;
        default:
            return false;
    }
}

bool consistent(const Attributes* operation, const Matrix& a, const Matrix& b, const Matrix& d) {
    const bool ta = operation->get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) != CUBLAS_OP_N;
    const bool tb = operation->get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) != CUBLAS_OP_N;
    const int64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns, k2 = tb ? b.columns : b.rows,
                  n = tb ? b.rows : b.columns;
    return k == k2 && d.rows == m && d.columns == n;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    *handle = reinterpret_cast<cublasLtHandle_t>(new Handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete reinterpret_cast<Handle*>(handle);
    return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() {
    return CUBLAS_VERSION;
}
const char* cublasLtGetStatusName(cublasStatus_t status) {
    return cublasGetStatusName(status);
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
    return cublasGetStatusName(status);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t compute, cudaDataType_t scale) {
    auto* made = new Attributes;
    const int32_t c = compute, s = scale;
    made->set(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &c, sizeof c);
    made->set(CUBLASLT_MATMUL_DESC_SCALE_TYPE, &s, sizeof s);
    *out = reinterpret_cast<cublasLtMatmulDesc_t>(made);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
    delete attributes(handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t name,
                                              const void* data, size_t bytes) {
    return attributes(handle)->set(name, data, bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t name,
                                              void* data, size_t bytes, size_t* written) {
    return attributes(handle)->read(name, data, bytes, written);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
    auto* made = new Attributes;
    const uint32_t t = type;
    made->set(CUBLASLT_MATRIX_LAYOUT_TYPE, &t, sizeof t);
    made->set(CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows);
    made->set(CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns);
    made->set(CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld);
    *out = reinterpret_cast<cublasLtMatrixLayout_t>(made);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
    delete attributes(handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t name,
                                                const void* data, size_t bytes) {
    return attributes(handle)->set(name, data, bytes);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t name,
                                                void* data, size_t bytes, size_t* written) {
    return attributes(handle)->read(name, data, bytes, written);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) {
    *out = reinterpret_cast<cublasLtMatmulPreference_t>(new Attributes);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
    delete attributes(handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void* data,
                                                    size_t bytes) {
    return attributes(handle)->set(name, data, bytes);
}

// One algorithm for what the stand-in knows, none otherwise.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
    *found = 0;
    if (!consistent(attributes(operation), matrix(attributes(a), nullptr), matrix(attributes(b), nullptr),
                    matrix(attributes(d), nullptr)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!epilogue_known(attributes(operation)->get<int32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    std::memset(results, 0, sizeof *results);
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].wavesCount = 1.0f;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation_handle, const void* alpha,
                              const void* a_data, cublasLtMatrixLayout_t a_layout, const void* b_data,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c_data,
                              cublasLtMatrixLayout_t c_layout, void* d_data, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
    const Attributes* operation = attributes(operation_handle);
    const Matrix a = matrix(attributes(a_layout), a_data), b = matrix(attributes(b_layout), b_data),
                 d = matrix(attributes(d_layout), d_data);
    const int epilogue = operation->get<int32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
    if (!consistent(operation, a, b, d)) return CUBLAS_STATUS_INVALID_VALUE;
    if (!epilogue_known(epilogue)) return CUBLAS_STATUS_NOT_SUPPORTED;
    return guarded([&] {
        const auto compute = static_cast<cublasComputeType_t>(
            operation->get<int32_t>(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, CUBLAS_COMPUTE_32F));
        const auto scale =
            static_cast<cudaDataType>(operation->get<int32_t>(CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUDA_R_32F));
        const bool ta = operation->get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) != CUBLAS_OP_N;
        const bool tb = operation->get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) != CUBLAS_OP_N;
        double factor = scalar(alpha, scale);
        for (int name : {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER})
            if (const auto* pointer = operation->get<const float*>(name, nullptr)) factor *= *pointer;
        at::Tensor out = d.tensor(false);
        at::Tensor result = product(a.tensor(ta), b.tensor(tb), compute).mul_(factor);
        const double add = scalar(beta, scale);
        if (add != 0) result.add_(matrix(attributes(c_layout), c_data).tensor(false).to(result.scalar_type()), add);
        const bool with_bias = epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
                               epilogue == CUBLASLT_EPILOGUE_GELU_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
        if (with_bias) {
            at::ScalarType dtype{};
            const int fallback = d.type == CUDA_R_8F_E4M3 || d.type == CUDA_R_8F_E5M2 ? CUDA_R_16BF : d.type;
            const int kind = operation->get<int32_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, -1);
            TORCH_CHECK(scalar_type(static_cast<cudaDataType>(kind < 0 ? fallback : kind), &dtype),
                        "unknown bias type");
            const void* pointer = operation->get<const void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr);
            TORCH_CHECK(pointer != nullptr, "a bias epilogue without a bias pointer");
            result.add_(view(pointer, {1, d.rows, 1}, {0, 1, 0}, dtype).to(result.scalar_type()));
        }
        if (epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
            Matrix aux = d;
            aux.data = operation->get<void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, nullptr);
            aux.ld = operation->get<int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, d.ld);
            TORCH_CHECK(aux.data != nullptr, "an auxiliary epilogue without its pointer");
            aux.tensor(false).copy_(result);
        }
        if (epilogue == CUBLASLT_EPILOGUE_RELU || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) result.relu_();
        // cuBLASLt's GELU is the one with tanh.
        if (epilogue == CUBLASLT_EPILOGUE_GELU || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS ||
            epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
            result = at::gelu(result, "tanh");
        if (const auto* pointer = operation->get<const float*>(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, nullptr))
            result.mul_(*pointer);
        out.copy_(result);
        return CUBLAS_STATUS_SUCCESS;
    });
}
}
