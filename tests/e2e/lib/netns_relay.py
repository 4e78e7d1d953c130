"""A cable that takes its time: copies frames between two network devices, each `delay` seconds late.

usage: netns_relay.py DEVICE DEVICE DELAY [RATE]

With a RATE, in bytes a second, no more goes through, and what would wait for long is lost.

Ends when its standard input does. The frames keep what the kernel knows about them (checksums still
to be filled in, segments to be cut), so they may be larger than the device's MTU."""

import contextlib
import heapq
import itertools
import selectors
import socket
import sys
import time

FRAME_MAX = 1 << 17
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
ETH_P_ALL = 3
PATIENCE = 0.1  # seconds that a frame may wait for the RATE


def open_device(name):
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    device.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    device.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    device.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
    device.bind((name, ETH_P_ALL))
    return device


def main():
    left, right, delay = open_device(sys.argv[1]), open_device(sys.argv[2]), float(sys.argv[3])
    rate = float(sys.argv[4]) if len(sys.argv) > 4 else None
    free = {left: 0, right: 0}  # when the wire to a device can take the next frame
    waiting = selectors.DefaultSelector()
    waiting.register(left, selectors.EVENT_READ, right)
    waiting.register(right, selectors.EVENT_READ, left)
    waiting.register(sys.stdin, selectors.EVENT_READ)
    under_way = []  # (due, number, device, frame), as a heap
    numbers = itertools.count()
    print("ready", flush=True)
    while True:
        patience = max(0, under_way[0][0] - time.monotonic()) if under_way else None
        for key, _ in waiting.select(patience):
            if key.fileobj is sys.stdin:
                return
            with contextlib.suppress(OSError):  # a device that went down says so once
                frame, now = key.fileobj.recv(FRAME_MAX), time.monotonic()
                if rate and free[key.data] > now + PATIENCE:
                    continue
                free[key.data] = max(free[key.data], now) + (len(frame) / rate if rate else 0)
                heapq.heappush(under_way, (free[key.data] + delay, next(numbers), key.data, frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, device, frame = heapq.heappop(under_way)
            with contextlib.suppress(OSError):
                device.send(frame)


if __name__ == "__main__":
    main()
