-- SPDX-License-Identifier: Apache-2.0 OR MIT
-- SMT in Wireshark and tshark: all packet types of version 1 (docs/draft-smt-00.md §3, §6, §8, §12).
--
--     tshark -X lua_script:smt.lua -r FILE
--     wireshark -X lua_script:smt.lua FILE        or copy it into a folder of Help > About > Folders
--
-- Datagrams are behind UDP, natively behind IP (§15.2), or in packets of PSP (§15.3), of which the header of DATA is clear.
-- A datagram has one or more packets, and each has a tree of its own. Nothing is decrypted: headers and the lists of control
-- packets are in the clear. A capture that `smt dump --decrypt` has written has the plaintext, and it is shown. Display
-- filters, for example:
--
--     smt.type == "RESEND"                        who asks again
--     smt.session == 0x100000007 && smt.id == 42  one message
--     smt.retransmit == 1                         bytes that were sent before
--     smt.malformed                               what a receiver drops
--     smt_native                                  what travels without UDP
--     smt_psp.spi == 0x80000007                   packets under one association of PSP
--     smt.inner.kind == "REQUEST"                 requests, in a decrypted capture

local smt = Proto("smt", "Secure Message Transport")

smt.prefs.port = Pref.uint("Port", 17379, "Port of SMT servers, over UDP and natively over IP")
smt.prefs.ip_protocol = Pref.uint("IP protocol", 253, "Number of SMT's own IP protocol")

local f = {
    version = ProtoField.uint8("smt.version", "Version"),
    type_code = ProtoField.uint8("smt.type_code", "Type code", base.HEX),
    type = ProtoField.string("smt.type", "Type"),
    epoch = ProtoField.uint8("smt.epoch", "Epoch (low 8 bits)"),
    flags = ProtoField.uint8("smt.flags", "Flags", base.HEX),
    retransmit = ProtoField.bool("smt.retransmit", "Retransmit", 8, nil, 0x01),
    header_words = ProtoField.uint8("smt.header_words", "Header words", base.HEX),
    length = ProtoField.uint16("smt.length", "Length"),
    session = ProtoField.uint64("smt.session", "Session index of the receiver", base.HEX),
    source = ProtoField.uint64("smt.source", "Session index of the sender", base.HEX),
    id = ProtoField.uint64("smt.id", "Message id"),
    message_length = ProtoField.uint32("smt.message_length", "Message length, with inner header and padding"),
    offset = ProtoField.uint32("smt.offset", "Offset"),
    stride = ProtoField.uint16("smt.stride", "Stride of its segment"),
    payload = ProtoField.bytes("smt.payload", "Payload"),
    payload_length = ProtoField.uint32("smt.payload_length", "Payload length"),
    record = ProtoField.none("smt.record", "Record"),
    record_length = ProtoField.uint16("smt.record.length", "Record length, with tag"),
    record_sealed = ProtoField.bytes("smt.record.sealed", "Ciphertext and tag"),
    stripe = ProtoField.uint16("smt.stripe", "Stripe"),
    number = ProtoField.uint64("smt.number", "Control number"),
    about = ProtoField.uint64("smt.about", "About message id"),
    granted = ProtoField.uint32("smt.granted", "Granted up to"),
    received = ProtoField.uint32("smt.received", "Received up to"),
    priority = ProtoField.uint8("smt.priority", "Priority"),
    resend_offset = ProtoField.uint32("smt.resend_offset", "From offset"),
    resend_length = ProtoField.uint32("smt.resend_length", "Bytes asked for (0xFFFFFFFF: to the end)", base.DEC_HEX),
    ack_base = ProtoField.uint64("smt.ack_base", "Base id"),
    ack_bits = ProtoField.uint64("smt.ack_bits", "Bits", base.HEX),
    limit = ProtoField.uint64("smt.limit", "Limit"),
    value = ProtoField.uint64("smt.value", "Value"),
    of_epoch = ProtoField.uint32("smt.of_epoch", "Of epoch"),
    size = ProtoField.uint32("smt.size", "Datagram size"),
    serial = ProtoField.uint32("smt.serial", "Serial of the association"),
    spi = ProtoField.uint32("smt.spi", "SPI", base.HEX),
    psp_version = ProtoField.uint8("smt.psp_version", "Version of PSP"),
    key = ProtoField.bytes("smt.key", "Key"),
    code = ProtoField.uint16("smt.code", "Code"),
    flight = ProtoField.uint8("smt.flight", "Flight"),
    flight_length = ProtoField.uint32("smt.flight_length", "Flight length"),
    cookie = ProtoField.bytes("smt.cookie", "Cookie"),
    token = ProtoField.bytes("smt.token", "Token"),
    spoken = ProtoField.uint8("smt.spoken_version", "Version spoken"),
    tag = ProtoField.bytes("smt.tag", "Tag"),
    sealed = ProtoField.bytes("smt.sealed", "Sealed by PSP"),
    inner = ProtoField.none("smt.inner", "Inner header"),
    true_length = ProtoField.uint32("smt.inner.true_length", "Application bytes of the message"),
    padded_length = ProtoField.uint32("smt.inner.padded_length", "With inner header and padding"),
    kind = ProtoField.string("smt.inner.kind", "Kind"),
    inner_flags = ProtoField.uint8("smt.inner.flags", "Flags", base.HEX),
    deadline = ProtoField.uint32("smt.inner.deadline", "Deadline (microseconds), code or number"),
    reply_unscheduled = ProtoField.uint32("smt.inner.reply_unscheduled", "Reply unscheduled, or parts"),
    window = ProtoField.uint32("smt.inner.window", "Window"),
    inner_ack_base = ProtoField.uint64("smt.inner.ack_base", "Acknowledged: base id"),
    inner_ack_bits = ProtoField.uint64("smt.inner.ack_bits", "Acknowledged: bits", base.HEX),
    plaintext = ProtoField.bytes("smt.plaintext", "Application bytes"),
}
smt.fields = f

local malformed = ProtoExpert.new("smt.malformed", "Malformed: a receiver drops it and the rest of the datagram",
    expert.group.MALFORMED, expert.severity.ERROR)
smt.experts = { malformed }

local PREFIX, DATA_HEADER, CONTROL_HEADER, TAG = 12, 36, 28, 16
local VERSION, PLAINTEXT_VERSION, LIST_MAX = 1, 0xF1, 64
local ABORT_CODES = { [1] = "SHUTTING_DOWN", [2] = "DROPPED", [3] = "TOO_LARGE", [4] = "REPLY_TOO_LARGE", [5] = "OVERLOADED" }

local TYPES = {
    [0x01] = "DATA", [0x10] = "HANDSHAKE", [0x11] = "COOKIE", [0x12] = "VERSION", [0x13] = "RESET",
    [0x15] = "UNAVAILABLE", [0x20] = "CONFIRM", [0x21] = "GRANT", [0x22] = "RESEND", [0x23] = "BUSY", [0x24] = "ACK",
    [0x25] = "NEED_ACK", [0x26] = "CANCEL", [0x27] = "VOIDED", [0x28] = "SEEN", [0x29] = "NEVER_SEEN",
    [0x2A] = "SEEN_AND_GONE", [0x2B] = "ABORT", [0x2C] = "WINDOW", [0x2D] = "WINDOW_REQUEST",
    [0x2E] = "KEY_UPDATE_REQUEST", [0x2F] = "EPOCH_DONE", [0x30] = "EPOCH_ACK", [0x31] = "PING", [0x32] = "PONG",
    [0x33] = "PROBE", [0x34] = "PROBE_ACK", [0x35] = "CLOSE", [0x36] = "PART_WINDOW", [0x37] = "PART_WINDOW_REQUEST",
    [0x38] = "ASSOCIATION", [0x39] = "ASSOCIATION_ACK", [0x3A] = "ASSOCIATION_REQUEST",
}

-- Bodies of control packets (§8): bytes of a list's entries, or of the one body, and how an entry is shown. The function
-- returns what the summary says of it.
local function id_alone(tree, body)
    tree:add(f.about, body(0, 8))
    return "id " .. body(0, 8):uint64()
end

local LISTS = {
    GRANT = { 24, function(tree, body)
        tree:add(f.about, body(0, 8))
        tree:add(f.granted, body(8, 4))
        tree:add(f.received, body(12, 4))
        tree:add(f.priority, body(16, 1))
        return "id " .. body(0, 8):uint64() .. " granted " .. body(8, 4):uint()
    end },
    RESEND = { 16, function(tree, body)
        tree:add(f.about, body(0, 8))
        tree:add(f.resend_offset, body(8, 4))
        tree:add(f.resend_length, body(12, 4))
        return "id " .. body(0, 8):uint64() .. " offset " .. body(8, 4):uint()
    end },
    ACK = { 16, function(tree, body)
        tree:add(f.ack_base, body(0, 8))
        tree:add(f.ack_bits, body(8, 8))
        return "base " .. body(0, 8):uint64()
    end },
    PART_WINDOW = { 16, function(tree, body)
        tree:add(f.about, body(0, 8))
        tree:add(f.limit, body(8, 8))
        return "id " .. body(0, 8):uint64() .. " limit " .. body(8, 8):uint64()
    end },
}
for _, name in ipairs({ "BUSY", "NEED_ACK", "CANCEL", "VOIDED", "SEEN", "NEVER_SEEN", "SEEN_AND_GONE", "PART_WINDOW_REQUEST" }) do
    LISTS[name] = { 8, id_alone }
end

local function epoch_alone(tree, body)
    tree:add(f.of_epoch, body(0, 4))
    return "of " .. body(0, 4):uint()
end
local function value_alone(tree, body)
    tree:add(f.value, body(0, 8))
    return "value " .. body(0, 8):uint64()
end
local function serial_alone(tree, body)
    tree:add(f.serial, body(0, 4))
    return "serial " .. body(0, 4):uint()
end
local BODIES = {
    ASSOCIATION_ACK = { 4, serial_alone },
    ASSOCIATION_REQUEST = { 4, serial_alone },
    ABORT = { 16, function(tree, body)
        tree:add(f.about, body(0, 8))
        local code = body(8, 2):uint()
        tree:add(f.code, body(8, 2)):append_text(" (" .. (ABORT_CODES[code] or "as DROPPED") .. ")")
        return "id " .. body(0, 8):uint64() .. " code " .. code
    end },
    WINDOW = { 8, function(tree, body)
        tree:add(f.limit, body(0, 8))
        return "limit " .. body(0, 8):uint64()
    end },
    WINDOW_REQUEST = { 0, function() return "" end },
    KEY_UPDATE_REQUEST = { 4, epoch_alone },
    EPOCH_DONE = { 4, epoch_alone },
    EPOCH_ACK = { 4, epoch_alone },
    PING = { 8, value_alone },
    PONG = { 8, value_alone },
    PROBE_ACK = { 4, function(tree, body)
        tree:add(f.size, body(0, 4))
        return "size " .. body(0, 4):uint()
    end },
    CLOSE = { 8, function(tree, body)
        tree:add(f.code, body(0, 2))
        return "code " .. body(0, 2):uint()
    end },
}

local KINDS = { [1] = "REQUEST", [2] = "REPLY", [3] = "ONE_WAY", [4] = "BUNDLE", [5] = "PART" }
local INNER_HEADER = 40

-- Shows the inner header (§5.2), and returns the application bytes of the message.
local function show_inner(tree, bytes)
    local inner = tree:add(f.inner, bytes)
    local kind = bytes(8, 1):uint()
    inner:add(f.true_length, bytes(0, 4))
    inner:add(f.padded_length, bytes(4, 4))
    inner:add(f.kind, bytes(8, 1), KINDS[kind] or tostring(kind))
    inner:add(f.inner_flags, bytes(9, 1))
    inner:add(f.deadline, bytes(12, 4))
    inner:add(f.reply_unscheduled, bytes(16, 4))
    inner:add(f.window, bytes(20, 4))
    inner:add(f.inner_ack_base, bytes(24, 8))
    inner:add(f.inner_ack_bits, bytes(32, 8))
    return bytes(0, 4):uint()
end

-- Shows a record that was decrypted: content, 17, zeros, and a tag of zeros. Returns the application bytes that are left
-- of the message.
local function show_plain(tree, bytes, left)
    local extent = bytes:len() - 1 - TAG
    local at = 0
    if not left then
        if extent < INNER_HEADER then return nil end
        left = show_inner(tree, bytes(0, INNER_HEADER))
        at = INNER_HEADER
    end
    local here = math.min(left, math.max(0, extent - at))
    if here > 0 then tree:add(f.plaintext, bytes(at, here)) end
    return left - here
end

-- Shows the records that begin in a DATA packet of offset 0: where later ones begin is agreed in the handshake.
local function show_records(tree, payload, is_plain)
    local at, left = 0, nil
    while payload:len() - at >= 5 and payload(at, 3):uint() == 0x170303 do
        local length = payload(at + 3, 2):uint()
        local here = math.min(5 + length, payload:len() - at)
        local record = tree:add(f.record, payload(at, here))
        record:add(f.record_length, payload(at + 3, 2))
        if is_plain and here == 5 + length and length > TAG then
            left = show_plain(record, payload(at + 5, length), left)
        elseif here > 5 then
            record:add(f.record_sealed, payload(at + 5, here - 5))
        end
        at = at + here
    end
end

-- Each of these shows a packet behind its prefix and returns what the summary says of it, or nil and why it is malformed.
-- `place` is that of the packet in a segment (§15.2), if it may have one.
local function data(tree, packet, _, place)
    if packet:len() <= DATA_HEADER then return nil, "DATA without payload" end
    local offset, stride = packet(32, 4):uint(), packet(10, 2):uint()
    -- A segment that was captured before it was cut is longer than its stride.
    if place and stride > 0 and place.payload_length <= stride then
        local number = place.identification and place.identification - 1 or packet(5, 1):bitfield(4, 1)
        offset = offset + number * stride
        if number < 0 or offset > 0xFFFFFFFF then return nil, "a packet without a place in its segment (§15.2-6)" end
        tree:add(f.stride, packet(10, 2))
    end
    tree:add(f.session, packet(12, 8))
    tree:add(f.id, packet(20, 8))
    tree:add(f.message_length, packet(28, 4))
    tree:add(f.offset, packet(32, 4), offset)
    local payload = packet(DATA_HEADER)
    tree:add(f.payload_length, payload, payload:len())
    local shown = tree:add(f.payload, payload)
    if offset == 0 then show_records(shown, payload, packet(0, 1):uint() == PLAINTEXT_VERSION) end
    return "id " .. packet(20, 8):uint64() .. " offset " .. offset .. " payload " .. payload:len()
end

local function handshake(tree, packet)
    if packet:len() < 40 then return nil, "HANDSHAKE cut short" end
    local flight, cookie, fragment = packet(28, 1):uint(), packet(29, 1):uint(), packet(30, 2):uint()
    local whole, offset = packet(32, 4):uint(), packet(36, 4):uint()
    if flight == 0 or flight > 7 or packet(20, 8):uint64() == UInt64(0) or whole > 65536 or offset + fragment > whole
        or cookie > 64 or 40 + cookie + fragment > packet:len() then
        return nil, "HANDSHAKE that contradicts itself (§6.2-3)"
    end
    tree:add(f.session, packet(12, 8))
    tree:add(f.source, packet(20, 8))
    tree:add(f.flight, packet(28, 1))
    tree:add(f.flight_length, packet(32, 4))
    tree:add(f.offset, packet(36, 4))
    if cookie > 0 then tree:add(f.cookie, packet(40, cookie)) end
    tree:add(f.payload_length, packet(30, 2))
    if fragment > 0 then tree:add(f.payload, packet(40 + cookie, fragment)) end
    return "flight " .. flight .. " offset " .. offset .. " of " .. whole
end

local function control(tree, packet, name)
    local length = packet:len() - CONTROL_HEADER - TAG
    if length < 0 then return nil, name .. " cut short" end
    tree:add(f.session, packet(12, 8))
    tree:add(f.stripe, packet(20, 2))
    tree:add(f.number, packet(22, 6))
    tree:add(f.tag, packet(packet:len() - TAG, TAG))
    local list, one = LISTS[name], BODIES[name]
    if list then
        local count = length / list[1]
        if length % list[1] ~= 0 or count < 1 or count > LIST_MAX then return nil, "a list of " .. length .. " bytes" end
        local told = {}
        for at = CONTROL_HEADER, CONTROL_HEADER + length - list[1], list[1] do
            table.insert(told, list[2](tree, packet(at, list[1])))
        end
        return table.concat(told, ", ")
    elseif one then
        if length ~= one[1] then return nil, "a body of " .. length .. " bytes" end
        if length == 0 then return "" end
        return one[2](tree, packet(CONTROL_HEADER, length))
    elseif name == "CONFIRM" then
        if length ~= 16 then return nil, "a body of " .. length .. " bytes" end
        tree:add(f.token, packet(CONTROL_HEADER, 16)):append_text(" (encrypted)")
        return ""
    elseif name == "ASSOCIATION" then
        if length ~= 12 + 32 then return nil, "a body of " .. length .. " bytes" end
        tree:add(f.serial, packet(CONTROL_HEADER, 4))
        tree:add(f.spi, packet(CONTROL_HEADER + 4, 4))
        tree:add(f.psp_version, packet(CONTROL_HEADER + 8, 1))
        tree:add(f.key, packet(CONTROL_HEADER + 12, 32)):append_text(" (encrypted)")
        return "serial " .. packet(CONTROL_HEADER, 4):uint()
    end
    return "padding " .. length -- PROBE
end

local function cookie(tree, packet)
    local length = packet:len() - 20
    if length < 1 or length > 64 then return nil, "a cookie of " .. length .. " bytes" end
    tree:add(f.session, packet(12, 8))
    tree:add(f.cookie, packet(20))
    return ""
end

local function reset(tree, packet)
    if packet:len() ~= 36 then return nil, "RESET of " .. packet:len() .. " bytes" end
    tree:add(f.session, packet(12, 8))
    tree:add(f.token, packet(20, 16))
    return ""
end

local function unavailable(tree, packet)
    if packet:len() ~= 22 then return nil, "UNAVAILABLE of " .. packet:len() .. " bytes" end
    tree:add(f.session, packet(12, 8))
    tree:add(f.code, packet(20, 2))
    return "code " .. packet(20, 2):uint()
end

local function versions(tree, packet)
    local count = packet:len() - PREFIX
    if count < 1 or count > 255 then return nil, "VERSION without versions" end
    for at = PREFIX, packet:len() - 1 do tree:add(f.spoken, packet(at, 1)) end
    return ""
end

local OTHERS = { HANDSHAKE = handshake, COOKIE = cookie, RESET = reset, UNAVAILABLE = unavailable, VERSION = versions }

-- Shows one packet at the beginning of `rest`. Returns its length, a summary and whether its type is unknown; or nil for
-- the length if the rest is malformed. `place` is that of the packet in a segment, if it may have one.
local function packet(rest, root, place)
    local function fail(tree, why)
        tree:add_proto_expert_info(malformed, "Malformed: " .. why)
        return nil, "malformed"
    end
    local tree = root:add(smt, rest)
    if rest:len() < PREFIX then return fail(tree, "a packet cut short") end
    local version, code = rest(0, 1):uint(), rest(1, 1):uint()
    local name = TYPES[code]
    tree:add(f.version, rest(0, 1))
    tree:add(f.type_code, rest(1, 1))
    local is_spoken = version == VERSION or version == PLAINTEXT_VERSION
    if name == "VERSION" then is_spoken = version == 0 end
    if not is_spoken then return fail(tree, "another version") end
    local length = rest(6, 2):uint()
    if length == 0 and name == "DATA" then length = rest:len() end
    if length < PREFIX or length > rest:len() then return fail(tree, "a length of " .. length) end
    local bytes = rest(0, length)
    tree:set_len(length)
    tree:add(f.epoch, rest(2, 1))
    tree:add(f.flags, rest(3, 1)):add(f.retransmit, rest(3, 1))
    tree:add(f.header_words, rest(4, 1))
    tree:add(f.length, rest(6, 2))
    local words = name == "DATA" and 0xB0 or 0x50
    if rest(4, 1):uint() ~= words then return fail(tree, "header words of another type") end
    if not name then
        tree:append_text(", unknown type")
        return length, "unknown type " .. code, true
    end
    tree:add(f.type, rest(1, 1), name)
    local show = name == "DATA" and data or OTHERS[name] or control
    local told, why = show(tree, bytes, name, place)
    if not told then return fail(tree, why) end
    local summary = told == "" and name or name .. " " .. told
    tree:append_text(", " .. summary)
    return length, summary
end

-- A tree that shows nothing, to look whether bytes are packets.
local NO_TREE = setmetatable({}, { __index = function() return function(self) return self end end })

local function are_packets(bytes)
    local at = 0
    while at < bytes:len() do
        local length, _, is_unknown = packet(bytes(at), NO_TREE)
        if not length or is_unknown then return false end
        at = at + length
    end
    return true
end

-- The size of the datagrams of one send call that were captured as one, before the kernel has cut them: the smallest at
-- whose every multiple packets begin. Reserved bytes are looked for first, since they are rare in ciphertext.
local function segment_size(buffer)
    local raw, whole = buffer:raw(), buffer:len()
    local reserved = 38 + 8
    while true do
        reserved = raw:find("\0\0\0\0", reserved, true)
        if not reserved then return whole end
        local size = reserved - 9
        if size >= 37 and raw:byte(size + 1) == raw:byte(1) and raw:byte(size + 6) == 0 then
            local all = true
            for at = 0, whole - 1, size do
                all = all and are_packets(buffer(at, math.min(size, whole - at)):tvb())
            end
            if all then return size end
        end
        reserved = reserved + 1
    end
end

-- Shows the packets of a payload, of which the first may have a place in a segment.
local function show_payload(buffer, info, root, place)
    if buffer:len() == 0 then return 0 end
    info.cols.protocol = "SMT"
    local size, told = segment_size(buffer), {}
    local is_refused = false
    for start = 0, buffer:len() - 1, size do
        local stop = math.min(start + size, buffer:len())
        local at = start
        while at < stop and not is_refused do
            local length, summary = packet(buffer(at, stop - at), root, at == 0 and place or nil)
            table.insert(told, summary)
            -- A packet without its place costs the rest of what was captured as one.
            is_refused = not length and at == 0 and place ~= nil
            if not length then break end
            at = at + length
        end
    end
    info.cols.info = table.concat(told, "; ")
    return buffer:len()
end

function smt.dissector(buffer, info, root)
    return show_payload(buffer, info, root)
end

-- The header of SMT natively over IP (§15.2), in the place of TCP's ports and sequence number.
local native = Proto("smt_native", "SMT natively over IP")
local ipv4_identification = Field.new("ip.id")
local NATIVE_HEADER = 8
local n = {
    source = ProtoField.uint16("smt_native.srcport", "Source port"),
    destination = ProtoField.uint16("smt_native.dstport", "Destination port"),
    sequence = ProtoField.uint32("smt_native.sequence", "Sequence (ignored)", base.HEX),
}
native.fields = n

-- Shows the native header, and returns whether its ports are SMT's.
local function show_native(buffer, info, root)
    local source, destination = buffer(0, 2):uint(), buffer(2, 2):uint()
    local tree = root:add(native, buffer(0, NATIVE_HEADER))
    tree:add(n.source, buffer(0, 2))
    tree:add(n.destination, buffer(2, 2))
    tree:add(n.sequence, buffer(4, 4))
    tree:append_text(", " .. source .. " > " .. destination)
    info.cols.protocol = "SMT"
    info.cols.info = source .. " > " .. destination
    return source == smt.prefs.port or destination == smt.prefs.port
end

function native.dissector(buffer, info, root)
    if buffer:len() < NATIVE_HEADER then return 0 end
    local is_ours = show_native(buffer, info, root)
    if is_ours and buffer:len() > NATIVE_HEADER then
        -- The innermost header of IP counts, if it is of version 4.
        local identifications = { ipv4_identification() }
        local innermost = identifications[#identifications]
        local is_ipv6 = tostring(info.net_dst):find(":", 1, true)
        local place = {
            identification = not is_ipv6 and innermost and innermost.value or nil,
            payload_length = buffer:reported_len() - NATIVE_HEADER - DATA_HEADER,
        }
        show_payload(buffer(NATIVE_HEADER):tvb(), info, root, place)
    end
    return buffer:len()
end

-- A packet of PSP with SMT natively in it (§15.3). The native header and DATA's header are clear.
local psp = Proto("smt_psp", "PSP with SMT in it")
local PSP_PORT, PSP_HEADER, ICV = 1000, 16, 16
local p = {
    next_header = ProtoField.uint8("smt_psp.next_header", "Next header"),
    extension = ProtoField.uint8("smt_psp.extension", "Extension length, in words of 8 bytes"),
    crypt_offset = ProtoField.uint8("smt_psp.crypt_offset", "Crypt offset, in words of 4 bytes", base.DEC, nil, 0x3F),
    version = ProtoField.uint8("smt_psp.version", "Version", base.DEC, { [0] = "AES-128-GCM", [1] = "AES-256-GCM" }, 0x3C),
    spi = ProtoField.uint32("smt_psp.spi", "SPI", base.HEX),
    iv = ProtoField.uint64("smt_psp.iv", "IV"),
    icv = ProtoField.bytes("smt_psp.icv", "ICV"),
}
psp.fields = p

local function show_sealed(bytes, root)
    root:add(smt, bytes):append_text(", sealed"):add(f.sealed, bytes)
    return "sealed"
end

-- Shows what is clear of a datagram that was sealed, `clear` bytes of it. Returns a summary.
local function show_clear(bytes, clear, root)
    if clear < DATA_HEADER or bytes:len() < PREFIX or TYPES[bytes(1, 1):uint()] ~= "DATA" then
        return show_sealed(bytes, root)
    end
    if bytes:len() >= DATA_HEADER and bytes(4, 1):uint() == 0xB0 and bytes(10, 2):uint() > 0 then
        root:add(smt, bytes):add_proto_expert_info(malformed, "Malformed: a place in a segment (§15.3-11)")
        return "malformed"
    end
    local length, summary = packet(bytes, root)
    if length and length < bytes:len() then
        summary = summary .. "; " .. show_sealed(bytes(length), root)
    end
    return summary
end

function psp.dissector(buffer, info, root)
    if buffer:len() < PSP_HEADER or buffer:reported_len() < PSP_HEADER + ICV then return 0 end
    local next_header, extension, flags = buffer(0, 1):uint(), buffer(1, 1):uint(), buffer(3, 1):uint()
    if next_header ~= smt.prefs.ip_protocol or extension == 0 or flags % 2 == 0 then return 0 end
    if info.dst_port ~= PSP_PORT then return 0 end
    -- The crypt offset counts from the end of the IV, and an extension from its beginning.
    local start = 8 + 8 * extension
    local clear = PSP_HEADER + buffer(2, 1):uint() % 64 * 4 - start
    local stop = buffer:reported_len() - ICV
    if clear < NATIVE_HEADER or start + clear > math.min(stop, buffer:len()) then return 0 end
    local tree = root:add(psp, buffer(0, start))
    tree:add(p.next_header, buffer(0, 1))
    tree:add(p.extension, buffer(1, 1))
    tree:add(p.crypt_offset, buffer(2, 1))
    tree:add(p.version, buffer(3, 1))
    tree:add(p.spi, buffer(4, 4))
    tree:add(p.iv, buffer(8, 8))
    if stop + ICV <= buffer:len() then tree:add(p.icv, buffer(stop, ICV)) end
    local told = string.format("in PSP spi 0x%08x iv %s", buffer(4, 4):uint(), buffer(8, 8):uint64())
    tree:append_text(", " .. told)
    local is_ours = show_native(buffer(start, NATIVE_HEADER), info, root)
    local datagram = start + NATIVE_HEADER
    local last = math.min(stop, buffer:len())
    if is_ours and last > datagram then
        told = told .. " " .. show_clear(buffer(datagram, last - datagram), clear - NATIVE_HEADER, root)
    end
    info.cols.info = told
    return buffer:len()
end

local udp, ip = DissectorTable.get("udp.port"), DissectorTable.get("ip.proto")
local port, protocol = nil, nil
local function register()
    if port then udp:remove(port, smt) end
    if protocol then ip:remove(protocol, native) end
    port, protocol = smt.prefs.port, smt.prefs.ip_protocol
    udp:add(port, smt)
    ip:add(protocol, native)
end
smt.prefs_changed = register
register()
udp:add(PSP_PORT, psp)
