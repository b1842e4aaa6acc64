"""A kernel as XLA calls it: a handler of its foreign functions, in LLVM's assembly.

`XLA_FFI_Error* handler(XLA_FFI_CallFrame*)`. Offsets are those of version 0.3 of the
structures in xla/ffi/api/c_api.h, which says that later versions only add to them. The
handler tells its version when it is asked for its metadata. Else it runs the kernel: in
parts if there is enough to do, which XLA's threads and the caller take one by one. The
caller waits only for parts that somebody is at, so that busy threads don't stop it.
Places out of bounds give NaN, as they do in XLA's code.
"""

from __future__ import annotations

VERSION = (0, 3)


def handler(
    arrays: tuple[int, int],
    constants: list[int],
    *,
    kept: int,
    count: int,
    columns: int,
    parts: int,
) -> str:
    """The function `handler`, for a module that has `kernel` (emit.py).

    `arrays` are the numbers of inputs and outputs, `constants` addresses, `kept` the
    bytes of memory for a row; `count` rows are cut into `parts`.
    """
    inputs, outputs = arrays
    places = [("args", i) for i in range(inputs)]
    places += [("rets", i) for i in range(outputs)]
    taken = "\n".join(
        f"  %slot{k} = getelementptr ptr, ptr %{of}, i64 {i}\n"
        f"  %buffer{k} = load ptr, ptr %slot{k}\n"
        f"  %at{k} = getelementptr i8, ptr %buffer{k}, i64 24\n"
        f"  %data{k} = load ptr, ptr %at{k}\n"
        f"  %to{k} = getelementptr ptr, ptr %task, i64 {3 + k}\n"
        f"  store ptr %data{k}, ptr %to{k}"
        for k, (of, i) in enumerate(places)
    )
    given = "\n".join(
        f"  %from{k} = getelementptr ptr, ptr %task, i64 {3 + k}\n"
        f"  %p{k} = load ptr, ptr %from{k}"
        for k in range(len(places))
    )
    pointers = [f"ptr %p{k}" for k in range(inputs)]
    pointers += [f"ptr inttoptr (i64 {c} to ptr)" for c in constants]
    pointers += [f"ptr %p{k}" for k in range(inputs, inputs + outputs)]
    major, minor = VERSION
    return _TEXT.format(
        bytes=8 * (3 + len(places)), pointers=", ".join(pointers), taken=taken,
        given=given, kept=max(kept, 1), count=count, columns=columns, parts=parts,
        major=major, minor=minor,
    )  # fmt: skip


# A task is: the next part, how many are done, how many hold it, and the addresses.
_TEXT = """
declare ptr @malloc(i64)
declare void @free(ptr)

define internal void @release(ptr %task) {{
  %held = getelementptr i64, ptr %task, i64 2
  %before = atomicrmw sub ptr %held, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %free, label %end
free:
  call void @free(ptr %task)
  br label %end
end:
  ret void
}}

define internal void @work(ptr %task) {{
entry:
  %done = getelementptr i64, ptr %task, i64 1
  br label %next
next:
  %i = atomicrmw add ptr %task, i64 1 acq_rel
  %some = icmp ult i64 %i, {parts}
  br i1 %some, label %part, label %end
part:
{given}
  %j = add i64 %i, 1
  %from = mul i64 %i, {count}
  %to = mul i64 %j, {count}
  %start = udiv i64 %from, {parts}
  %stop = udiv i64 %to, {parts}
  %kept = call ptr @malloc(i64 {kept})
  %bad = call i32 @kernel({pointers}, ptr %kept, i64 %start, i64 %stop, i64 {columns})
  call void @free(ptr %kept)
  %now = atomicrmw add ptr %done, i64 1 release
  br label %next
end:
  call void @release(ptr %task)
  ret void
}}

define ptr @handler(ptr %frame) {{
entry:
  %first.at = getelementptr i8, ptr %frame, i64 8
  %first = load ptr, ptr %first.at
  br label %extension
extension:
  %each = phi ptr [%first, %entry], [%following, %other]
  %none = icmp eq ptr %each, null
  br i1 %none, label %run, label %look
look:
  %type.at = getelementptr i8, ptr %each, i64 8
  %type = load i32, ptr %type.at
  %asked = icmp eq i32 %type, 1
  br i1 %asked, label %metadata, label %other
other:
  %following.at = getelementptr i8, ptr %each, i64 16
  %following = load ptr, ptr %following.at
  br label %extension
metadata:
  %metadata.at = getelementptr i8, ptr %each, i64 24
  %answer = load ptr, ptr %metadata.at
  %size.at = getelementptr i8, ptr %answer, i64 8
  store i64 24, ptr %size.at
  %more.at = getelementptr i8, ptr %answer, i64 16
  store ptr null, ptr %more.at
  %major.at = getelementptr i8, ptr %answer, i64 24
  store i32 {major}, ptr %major.at
  %minor.at = getelementptr i8, ptr %answer, i64 28
  store i32 {minor}, ptr %minor.at
  %traits.at = getelementptr i8, ptr %answer, i64 32
  store i32 0, ptr %traits.at
  ret ptr null

run:
  %args.at = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %args.at
  %rets.at = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rets.at
  %task = call ptr @malloc(i64 {bytes})
  store i64 0, ptr %task
  %done = getelementptr i64, ptr %task, i64 1
  store i64 0, ptr %done
  %held = getelementptr i64, ptr %task, i64 2
  store i64 2, ptr %held
{taken}
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %ctx.at = getelementptr i8, ptr %frame, i64 24
  %ctx = load ptr, ptr %ctx.at
  %several = icmp ugt i64 {parts}, 1
  br i1 %several, label %ask, label %mine

ask:
  %count = alloca i64
  store i64 1, ptr %count
  %query = alloca [4 x i64]
  store i64 32, ptr %query
  %query1 = getelementptr ptr, ptr %query, i64 1
  store ptr null, ptr %query1
  %query2 = getelementptr ptr, ptr %query, i64 2
  store ptr %ctx, ptr %query2
  %query3 = getelementptr ptr, ptr %query, i64 3
  store ptr %count, ptr %query3
  %order = alloca [5 x i64]
  store i64 40, ptr %order
  %order1 = getelementptr ptr, ptr %order, i64 1
  store ptr null, ptr %order1
  %order2 = getelementptr ptr, ptr %order, i64 2
  store ptr %ctx, ptr %order2
  %order3 = getelementptr ptr, ptr %order, i64 3
  store ptr @work, ptr %order3
  %order4 = getelementptr ptr, ptr %order, i64 4
  store ptr %task, ptr %order4
  %destroy.at = getelementptr i8, ptr %api, i64 64
  %destroy = load ptr, ptr %destroy.at
  %schedule.at = getelementptr i8, ptr %api, i64 136
  %schedule = load ptr, ptr %schedule.at
  %threads.at = getelementptr i8, ptr %api, i64 144
  %threads = load ptr, ptr %threads.at
  %unknown = call ptr %threads(ptr %query)
  call void @forget(ptr %destroy, ptr %unknown)
  %all = load i64, ptr %count
  %fewer = icmp ult i64 %all, {parts}
  %most = select i1 %fewer, i64 %all, i64 {parts}
  br label %start
start:
  %n = phi i64 [1, %ask], [%n.next, %started], [%most, %failed]
  %enough = icmp sge i64 %n, %most
  br i1 %enough, label %mine, label %one
one:
  %n.next = add i64 %n, 1
  %more = atomicrmw add ptr %held, i64 1 acq_rel
  %error = call ptr %schedule(ptr %order)
  %ok = icmp eq ptr %error, null
  br i1 %ok, label %started, label %failed
started:
  br label %start
failed:
  call void @forget(ptr %destroy, ptr %error)
  %less = atomicrmw sub ptr %held, i64 1 acq_rel
  br label %start

mine:
  call void @work(ptr %task)
  br label %wait
wait:
  %finished = load atomic i64, ptr %done acquire, align 8
  %over = icmp uge i64 %finished, {parts}
  br i1 %over, label %end, label %wait
end:
  call void @release(ptr %task)
  ret ptr null
}}

define internal void @forget(ptr %destroy, ptr %error) {{
  %none = icmp eq ptr %error, null
  br i1 %none, label %end, label %some
some:
  %args = alloca [3 x i64]
  store i64 24, ptr %args
  %args1 = getelementptr ptr, ptr %args, i64 1
  store ptr null, ptr %args1
  %args2 = getelementptr ptr, ptr %args, i64 2
  store ptr %error, ptr %args2
  call void %destroy(ptr %args)
  br label %end
end:
  ret void
}}
"""
