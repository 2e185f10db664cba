// SPDX-License-Identifier: Apache-2.0
// Functions of the host for test_ffi.py, written as users write them: by XLA's typed FFI.
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;
using F32Out = ffi::ResultBuffer<ffi::F32>;

// ---- arrays and attributes ----

static ffi::Error Scale(float by, F32 x, F32Out y)
{
	for (size_t i = 0; i < x.element_count(); i++)
		y->typed_data()[i] = by * x.typed_data()[i];
	return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale, Scale,
	ffi::Ffi::Bind().Attr<float>("by").Arg<F32>().Ret<F32>());

// What it is, as a text of dtype, dims and bytes; any array, any number of them.
static ffi::Error Describe(ffi::RemainingArgs args, ffi::Result<ffi::Buffer<ffi::U8>> out)
{
	std::string text;

	for (size_t i = 0; i < args.size(); i++) {
		auto x = args.get<ffi::AnyBuffer>(i);
		if (!x)
			return ffi::Error::InvalidArgument("no array");
		text += std::to_string(static_cast<int>(x->element_type())) + ":";
		for (int64_t d : x->dimensions())
			text += std::to_string(d) + ",";
		for (size_t b = 0; b < x->size_bytes(); b++)
			text += " " + std::to_string(static_cast<uint8_t *>(x->untyped_data())[b]);
		text += ";";
	}
	if (text.size() > out->size_bytes())
		return ffi::Error::InvalidArgument("no room for " + std::to_string(text.size()));
	std::memset(out->untyped_data(), 0, out->size_bytes());
	std::memcpy(out->untyped_data(), text.data(), text.size());
	return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(describe, Describe,
	ffi::Ffi::Bind().RemainingArgs().Ret<ffi::Buffer<ffi::U8>>());

template <typename T>
static std::string List(ffi::Span<const T> span)
{
	std::string text;
	for (T v : span)
		text += std::to_string(v) + ",";
	return text;
}

static ffi::Error Attributes(bool b, int32_t i32, int64_t i64, uint8_t u8, float f32, double f64,
			     std::string_view text, ffi::Span<const int64_t> ints,
			     ffi::Span<const float> floats, ffi::Span<const uint8_t> bytes,
			     ffi::Dictionary more, ffi::Result<ffi::Buffer<ffi::U8>> out)
{
	auto inner = more.get<int32_t>("inner");
	auto name = more.get<std::string_view>("name");
	if (!inner || !name || more.contains("none"))
		return ffi::Error::InvalidArgument("the dictionary is another");
	std::string all = std::to_string(b) + " " + std::to_string(i32) + " " +
			  std::to_string(i64) + " " + std::to_string(u8) + " " +
			  std::to_string(f32) + " " + std::to_string(f64) + " " +
			  std::string(text) + " " + List(ints) + " " + List(floats) + " " +
			  List(bytes) + " " + std::to_string(*inner) + " " + std::string(*name);
	std::memset(out->untyped_data(), 0, out->size_bytes());
	std::memcpy(out->untyped_data(), all.data(), std::min(all.size(), out->size_bytes()));
	return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(attributes, Attributes,
	ffi::Ffi::Bind().Attr<bool>("b").Attr<int32_t>("i32").Attr<int64_t>("i64")
	.Attr<uint8_t>("u8").Attr<float>("f32").Attr<double>("f64")
	.Attr<std::string_view>("text").Attr<ffi::Span<const int64_t>>("ints")
	.Attr<ffi::Span<const float>>("floats").Attr<ffi::Span<const uint8_t>>("bytes")
	.Attr<ffi::Dictionary>("more").Ret<ffi::Buffer<ffi::U8>>());

// Two results of other types, one of them a number.
static ffi::Error SumAndSigns(F32 x, F32Out sum, ffi::Result<ffi::Buffer<ffi::S32>> signs)
{
	*sum->typed_data() = 0;
	for (size_t i = 0; i < x.element_count(); i++) {
		float v = x.typed_data()[i];
		*sum->typed_data() += v;
		signs->typed_data()[i] = (v > 0) - (v < 0);
	}
	return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(sum_and_signs, SumAndSigns,
	ffi::Ffi::Bind().Arg<F32>().Ret<F32>().Ret<ffi::Buffer<ffi::S32>>());

// Adds one to the first element alone: the rest is there already if x and y are one memory.
static ffi::Error FirstPlusOne(F32 x, F32Out y)
{
	if (x.typed_data() != y->typed_data())
		return ffi::Error(ffi::ErrorCode::kFailedPrecondition, "x and y are not one memory");
	y->typed_data()[0] += 1;
	return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(first_plus_one, FirstPlusOne,
	ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

// ---- effects ----

static std::atomic<int64_t> counted{0};
extern "C" int64_t count_so_far() { return counted; }

static ffi::Error Count() { counted++; return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(count, Count, ffi::Ffi::Bind());

// ---- errors ----

static ffi::Error Fail(int32_t code, std::string_view text, F32 x, F32Out y)
{
	if (x.typed_data()[0] >= 0) {
		std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
		return ffi::Error::Success();
	}
	return ffi::Error(static_cast<XLA_FFI_Error_Code>(code), std::string(text));
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(fail, Fail,
	ffi::Ffi::Bind().Attr<int32_t>("code").Attr<std::string_view>("text").Arg<F32>()
	.Ret<F32>());

// ---- what a function may ask ----

static ffi::Error Asks(ffi::ScratchAllocator scratch, ffi::ThreadPool pool, ffi::RunId run,
		       int32_t ordinal, ffi::Result<ffi::Buffer<ffi::S64>> out)
{
	auto p = scratch.Allocate(1000, 256);
	std::atomic<int64_t> sum{0}, left{10};

	if (!p || reinterpret_cast<uintptr_t>(*p) % 256)
		return ffi::Error::Internal("no memory");
	std::memset(*p, 1, 1000);
	for (int64_t i = 0; i < 10; i++)
		pool.Schedule([&, i] { sum += i; left--; });
	while (left)
		std::this_thread::yield();
	out->typed_data()[0] = sum;
	out->typed_data()[1] = pool.num_threads() >= 1;
	out->typed_data()[2] = run.run_id;
	out->typed_data()[3] = ordinal;
	return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(asks, Asks,
	ffi::Ffi::Bind().Ctx<ffi::ScratchAllocator>().Ctx<ffi::ThreadPool>().Ctx<ffi::RunId>()
	.Ctx<ffi::DeviceOrdinal>().Ret<ffi::Buffer<ffi::S64>>());

static ffi::Error Stream(void *, F32, F32Out)
{
	return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(stream, Stream,
	ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void *>>().Arg<F32>().Ret<F32>());

// A result that comes when a thread of the function's own is done; negative: it fails.
static ffi::Future Later(F32 x, F32Out y)
{
	ffi::Promise promise;
	ffi::Future future(promise);

	std::thread([x, y, promise = std::move(promise)]() mutable {
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
		std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
		if (x.typed_data()[0] < 0)
			promise.SetError(ffi::Error(ffi::ErrorCode::kDataLoss, "lost on a thread"));
		else
			promise.SetAvailable();
	}).detach();
	return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(later, Later, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

// ---- stages and state ----

struct Made {
	static std::atomic<int64_t> alive;
	float by;
	std::atomic<int64_t> calls{0};
	explicit Made(float b) : by(b) { alive++; }
	~Made() { alive--; }
	static ffi::TypeId id;
	static XLA_FFI_TypeInfo info;
};
std::atomic<int64_t> Made::alive{0};
ffi::TypeId Made::id = {};
XLA_FFI_TypeInfo Made::info = ffi::MakeTypeInfo<Made>();

struct Ready {
	static std::atomic<int64_t> alive;
	int64_t number;
	explicit Ready(int64_t n) : number(n) { alive++; }
	~Ready() { alive--; }
	static ffi::TypeId id;
	static XLA_FFI_TypeInfo info;
};
std::atomic<int64_t> Ready::alive{0};
ffi::TypeId Ready::id = {};
XLA_FFI_TypeInfo Ready::info = ffi::MakeTypeInfo<Ready>();

extern "C" {
void *made_id() { return &Made::id; }
void *made_info() { return &Made::info; }
void *ready_id() { return &Ready::id; }
void *ready_info() { return &Ready::info; }
int64_t made_alive() { return Made::alive; }
int64_t ready_alive() { return Ready::alive; }
}

static ffi::ErrorOr<std::unique_ptr<Made>> Make(float by)
{
	if (by < 0)
		return ffi::Unexpected(ffi::Error(ffi::ErrorCode::kOutOfRange, "by is negative"));
	return std::make_unique<Made>(by);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(stateful_instantiate, Make,
	ffi::Ffi::BindInstantiate().Attr<float>("by"));

static std::atomic<int64_t> prepared{0}, initialized{0};
static ffi::Error Prepare(Made *, ffi::RemainingArgs args, ffi::RemainingRets rets)
{
	if (args.size() != 1 || rets.size() != 1)
		return ffi::Error::Internal("prepared without arrays");
	prepared++;
	return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(stateful_prepare, Prepare,
	ffi::Ffi::BindPrepare().Ctx<ffi::State<Made>>().RemainingArgs().RemainingRets());

static ffi::ErrorOr<std::unique_ptr<Ready>> Initialize(Made *)
{
	return std::make_unique<Ready>(++initialized);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(stateful_initialize, Initialize,
	ffi::Ffi::BindInitialize().Ctx<ffi::State<Made>>());

// [by * x, calls of this place so far, which run this is]
static ffi::Error Stateful(Made *made, Ready *ready, F32 x, ffi::Dictionary, F32Out y)
{
	y->typed_data()[0] = made->by * x.typed_data()[0];
	y->typed_data()[1] = static_cast<float>(++made->calls);
	y->typed_data()[2] = static_cast<float>(ready->number);
	return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(stateful_execute, Stateful,
	ffi::Ffi::Bind().Ctx<ffi::State<Made>>().Ctx<ffi::Initialized<Ready>>().Arg<F32>()
	.Attrs().Ret<F32>());
// JAX has no way to give user data: it is missing, by its type's name.
static ffi::Error Wants(Made *, F32, F32Out)
{
	return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(wants, Wants,
	ffi::Ffi::Bind().Ctx<ffi::UserData<Made>>().Arg<F32>().Ret<F32>());
static ffi::Error Unprepared(ffi::RemainingArgs, ffi::RemainingRets)
{
	return ffi::Error::Internal("it can not be prepared");
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(unprepared, Unprepared,
	ffi::Ffi::BindPrepare().RemainingArgs().RemainingRets());
extern "C" int64_t prepared_so_far() { return prepared; }
